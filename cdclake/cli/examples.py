"""Examples of the commands, which `--help` and the reference show; a test parses each."""

from __future__ import annotations

from collections.abc import Mapping

# The first word of a command line is `cdclake`.
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "new": ("new shop-lake", "new shop-lake --from-db local"),
    "doctor": ("doctor", "doctor pipelines/shop.yaml --target aws --environment prod"),
    "init": ("init -o pipelines/shop.yaml --schema public", "init --update pipelines/shop.yaml"),
    "validate": (
        "validate pipelines/shop.yaml",
        "validate pipelines/shop.yaml --environment prod",
    ),
    "schema": ("schema", "schema --doc policies.new_columns"),
    "migrate": ("migrate pipelines/shop.yaml",),
    "plan": ("plan pipelines/shop.yaml", "plan pipelines/shop.yaml --environment prod"),
    "up": ("up pipelines/shop.yaml", "up --no-stream"),
    "down": ("down", "down --purge"),
    "demo": ("demo", "demo --seconds 60 --rate 500"),
    "status": ("status", "status --target aws --file pipelines/shop.yaml --environment prod"),
    "ui": ("ui", "ui --target aws --file pipelines/shop.yaml --environment prod"),
    "metrics": ("metrics", "metrics --serve 9188"),
    "logs": ("logs connect",),
    "trace": (
        "trace orders 42",
        "trace orders 42 --target aws --file pipelines/shop.yaml --environment prod",
    ),
    "peek": ("peek orders", "peek orders --last 3"),
    "quarantine": (
        "quarantine orders --limit 5",
        "quarantine --target aws --file pipelines/shop.yaml --environment prod",
    ),
    "sql": ("sql 'SELECT count(*) FROM orders_current'",),
    "snapshots": ("snapshots orders",),
    "psql": ("psql", "psql -- -c 'SELECT 1'"),
    "verify": ("verify", "verify --table orders --sample 1000"),
    "runbook": ("runbook", "runbook stopped-table"),
    "pause": ("pause",),
    "resume": ("resume",),
    "job": (
        "job maintain_tables",
        "job apply_changes --table orders",
        "job poll_tables --table rates --whole",
    ),
    "resync": ("resync orders",),
    "replay": ("replay", "replay --table orders"),
    "forget": (
        "forget customers 42",
        "forget customers --keys erased.txt --yes",
        "forget customers 42 --target aws --file pipelines/shop.yaml --environment prod",
    ),
    "redrive": ("redrive --dry-run",),
    "rehearse": ("rehearse pipelines/shop.yaml --schema schema.sql --migration migration.sql",),
    "cost": ("cost pipelines/shop.yaml --environment prod",),
    "views": ("views pipelines/shop.yaml --table orders",),
    "connect": ("connect duckdb", "connect spark --table orders"),
    "connector": ("connector pipelines/shop.yaml --host db.example.com",),
    "dbt": ("dbt pipelines/shop.yaml",),
    "source sql": ("source sql change.sql",),
}


def example_lines(command: str) -> tuple[str, ...]:
    """Return the command's examples as they are typed; none if it has none."""
    return tuple(f"cdclake {line}" for line in EXAMPLES.get(command, ()))
