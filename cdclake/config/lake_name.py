"""Names in the lake, as a pipeline file declares them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from cdclake import naming
from cdclake.config.problems import Refused

_MAX_LAKE_NAME_CHARACTERS = 128
# DuckDB's catalogs and schemas, as which it reads `NAME.table`; all engines have the first one.
_RESERVED_DATABASES = {"information_schema", "pg_catalog", "system", "temp", "memory"}


def check_lake_name(name: str) -> str:
    """Return `name` if Glue, Athena, Spark and DuckDB all accept it unquoted."""
    if naming.LAKE_NAME.fullmatch(name) is None:
        raise Refused(
            f"invalid lake name {name!r}",
            f"use lowercase letters, digits and underscores, like `{_like(name)}`",
        )
    if len(name) > _MAX_LAKE_NAME_CHARACTERS:
        raise Refused("the name is too long", f"use at most {_MAX_LAKE_NAME_CHARACTERS} characters")
    return name


def _like(name: str) -> str:
    """Return a valid name close to `name`; a hash only if it has no letters or digits to keep."""
    slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return slug if naming.LAKE_NAME.fullmatch(slug) else naming.lake_name(name)


def _check_database_name(name: str) -> str:
    """Refuse the names of schemas and catalogs that engines have for themselves."""
    if name in _RESERVED_DATABASES:
        raise Refused(
            f"{name!r} is reserved in DuckDB, Trino or Athena",
            f"use another name, like `{name}_lake`",
        )
    return name


LakeName = Annotated[
    str,
    AfterValidator(check_lake_name),
    Field(json_schema_extra={"pattern": f"^{naming.LAKE_NAME.pattern}$"}),
]

DatabaseName = Annotated[LakeName, AfterValidator(_check_database_name)]
