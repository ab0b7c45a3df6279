"""Extras of the package: which of them a module belongs to that a command could not import."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec

from cdclake.errors import InputError

LOCAL, CDK = "local", "cdk"
# The modules of each extra in pyproject.toml that cdclake imports; `local` includes `read`.
MODULES: Mapping[str, tuple[str, ...]] = {
    "read": (
        *("duckdb", "duckdb_extension_avro"),
        *("duckdb_extension_httpfs", "duckdb_extension_iceberg", "prompt_toolkit", "pytz"),
    ),
    LOCAL: (
        *("adbc_driver_postgresql", "awsglue", "confluent_kafka", "fastavro", "mmh3", "moto"),
        *("msgspec", "numpy", "pandas"),
        *("pyarrow", "pyiceberg", "pyspark", "trino", "werkzeug"),
    ),
    CDK: ("aws_cdk", "cdk_nag", "constructs", "pip"),
}


def missing_modules(extra: str) -> list[str]:
    """Return the modules of the extra that are not installed."""
    return [module for module in MODULES[extra] if find_spec(module) is None]


def install_remedy(extra: str) -> str:
    """Return how to install the extra.

    cdclake is not on PyPI, where anyone may publish a package of that name: the remedy names the
    wheel that this cdclake was installed from.
    """
    try:
        installed = distribution("cdclake")
    except PackageNotFoundError:  # in a clone
        return "run `make setup` in the project's folder"
    text = installed.read_text("direct_url.json")  # as PEP 610 defines it
    example = f"file:///path/to/cdclake-{installed.version}-py3-none-any.whl"
    wheel = json.loads(text)["url"] if text else example
    return (
        f'install "cdclake[{extra}] @ {wheel}" with the tool that installed cdclake'
        " (`pip install`, `pipx install --force`, `uvx --from`); in a project of `cdclake new`,"
        " run `uv sync`"
    )


def missing_extra(error: ModuleNotFoundError) -> InputError | None:
    """Return the error that names the extra of a missing module; None if it is in none."""
    module = (error.name or "").partition(".")[0]
    for extra, modules in MODULES.items():
        if module in modules:
            return InputError(
                f"this command needs the Python package of {module!r}, which is not installed",
                install_remedy(extra),
            )
    return None
