"""`backup: all`: all records that a stream has read, unchanged, in compressed objects in S3.

Records are concatenated without a separator, as Firehose writes them.
"""

from __future__ import annotations

import gzip
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from cdclake.firehose.stream import DeliveryStream
from cdclake.local.firehose.records import Record
from cdclake.naming import delivery_backup_prefix


class Backup:
    """Backup of the records that one stream, `name` in Firehose, reads."""

    def __init__(self, s3: Any, bucket: str, stream: DeliveryStream, name: str) -> None:
        self._s3, self._bucket, self._stream, self._name = s3, bucket, stream, name

    def keep(self, records: Sequence[Record]) -> None:
        """Put the records into one object, if any has a value; a second read is kept again."""
        values = b"".join(record.value or b"" for record in records)
        if not values:
            return
        now = datetime.fromtimestamp(time.time(), UTC)
        folder = delivery_backup_prefix(self._stream.error_prefix, self._name, f"{now:%Y/%m/%d}")
        name = f"{self._name}-1-{now:%Y-%m-%d-%H-%M-%S}-{uuid.uuid4()}.gz"
        self._s3.put_object(Bucket=self._bucket, Key=f"{folder}{name}", Body=gzip.compress(values))
