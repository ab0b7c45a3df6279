"""What of Firehose's delivery is not built yet is not deployed by halves."""

from __future__ import annotations

import pytest

from cdclake.errors import InputError
from tests.synth.deployments import PIPELINE, Deploy


def test_a_table_that_firehose_delivers_is_refused_with_its_name(deploy: Deploy) -> None:
    text = PIPELINE.replace(
        "    key: [order_id]\n", "    key: [order_id]\n    delivery: firehose\n"
    )
    with pytest.raises(InputError, match="does not deploy yet what Firehose delivers: orders"):
        deploy(text)
