"""Events with all kinds of values, as the JSON converter writes them with their schema."""

from __future__ import annotations

import math
from typing import Any

from tests.avro.converters import struct

TOPIC = "shop.public.goods"


def optional(kind: str, value: Any, **more: Any) -> tuple[dict[str, Any], Any]:
    """Schema and value of an optional field."""
    return {"type": kind, "optional": True, **more}, value


def array(kind: str, value: Any) -> tuple[dict[str, Any], Any]:
    """Schema and value of an array of optional items."""
    return optional("array", value, items={"type": kind, "optional": True})


ROW = {
    "id": ({"type": "int64", "optional": False}, 2**62),
    "small": optional("int16", -7, name="io.debezium.data.Small"),
    "größe 1": optional("int32", None, default=7),
    "naïve_user_uuid": optional("string", 'a "b"\n\u001f\U0001f600 \\u001f'),
    "x_u00f6": ({"type": "string", "optional": False, "default": "d"}, "v"),
    "price": optional("double", 0.5),
    "limit": ({"type": "double", "optional": False, "default": math.inf}, 2.5),
    "real": optional("float", 0.1),
    "raw": optional("bytes", "AP8Q"),
    "yes": optional("boolean", True),
    "floats": array("float", [0.1, None, 1e-7, -0.0, 1234567.9]),
    "doubles": array("double", [1e10, 0.001, 1e-4, 123456.75]),
    "texts": array("string", ["ü\u000b", None, '"']),
    "at": optional("string", None),
}
POINT = struct(
    "io.debezium.data.geometry.Point",
    {
        "x": ({"type": "double", "optional": False}, 1e7),
        "y": ({"type": "double", "optional": False}, -2.0),
        "wkb": optional("bytes", "AQEAAAAAAAAAAAD4PwAAAAAAAADA"),
        "srid": optional("int32", None),
    },
)


def event(*, with_point: bool = True, **fields: Any) -> dict[str, Any]:
    """A record of the JSON converter with its schema."""
    row = ROW | ({"place": POINT} if with_point else {}) | fields
    after = struct("my-shop.public.größe.Value", row)
    envelope = {
        "before": (after[0], None),
        "after": after,
        "op": ({"type": "string", "optional": False}, "c"),
        "cdc_epoch": optional("string", "7"),
    }
    schema, payload = struct("my-shop.public.größe.Envelope", envelope)
    return {"schema": schema, "payload": payload}
