"""The mutations of `make test-mutations` still say what the source says."""

from pathlib import Path

import pytest

from tests.mutations.broken import MUTATIONS
from tests.mutations.mutation import Mutation

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_finds_the_text_that_it_breaks(mutation: Mutation) -> None:
    for name, old, new in mutation.patches:
        assert old in (PROJECT / name).read_text(), f"{name} does not say this any more"
        assert old != new
