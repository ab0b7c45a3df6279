"""Text of a pipeline file, written from proposals.

Refused tables are comments: prose after `##`, and the lines that admit the table after `# `.
Removing one `# ` from each line of a block leaves a valid file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cdclake import naming
from cdclake.plan import Table
from cdclake.postgres.file_lines import scalar
from cdclake.postgres.proposal import Proposal
from cdclake.postgres.quoting import identifier

_MAX_PIPELINE_CHARACTERS = 21


def pipeline_name(database: str) -> str:
    """Return a valid pipeline name, derived from the database's name."""
    slug = re.sub(r"[^a-z0-9]+", "-", database.lower()).strip("-")
    if not slug or not slug[0].isalpha():
        slug = f"db-{slug}"
    slug = slug[:_MAX_PIPELINE_CHARACTERS].strip("-")
    return slug if len(slug) > 1 else f"{slug}-db"


def table_key(schema: str, table: str) -> str:
    """Return the table as a key of `tables`; quote a part with a dot or a quote."""
    parts = (identifier(part) if set(part) & set('."') else part for part in (schema, table))
    return ".".join(parts)


def render_pipeline(database: str, proposals: Sequence[Proposal], name: str = "") -> str:
    """Return the whole file; without a name, the pipeline's is that of the database."""
    refused = [proposal for proposal in proposals if proposal.reason]
    admitted = [proposal for proposal in proposals if not proposal.reason]
    lines = [
        f"## Written by `cdclake init`: {len(admitted)} tables flow as they are,"
        f" {len(refused)} are refused and listed at the end.",
        "## Look it over, then: cdclake validate FILE, and cdclake up FILE",
        "version: 1",
        f"name: {scalar(name or pipeline_name(database))}",
        "source:",
        f"  database: {scalar(database)}",
        "tables:",
    ]
    for proposal in admitted:
        lines += entry_lines(proposal)
    for proposal in refused:
        lines += ["", *_refused_lines(proposal)]
    return "\n".join(lines) + "\n"


def _refused_lines(proposal: Proposal) -> list[str]:
    """Return the reason, the remedy and the lines that admit the table, as comments."""
    lines = _prose(f"{proposal.source.source} is refused: {proposal.reason}")
    if proposal.declared is None:
        return lines + _prose(f"No line admits it as it is; {proposal.remedy}")
    lines += _prose("These lines admit it, once the leading `# ` is removed:")
    if proposal.declared.replica_identity_declared:
        lines += _prose("(`up --source` prints the required statements, but does not run them)")
    return lines + [f"# {line}" for line in entry_lines(proposal)]


def entry_lines(proposal: Proposal) -> list[str]:
    """Return the table's entry, indented for its place under `tables:`."""
    table = proposal.declared
    if table is None:
        return []
    lines = [f"  {scalar(table_key(table.schema, table.table))}:"]
    if table.name != naming.lake_name(table.table):
        lines.append(f"    name: {table.name}")
    if proposal.note:
        lines += [f"    {line}" for line in _prose(proposal.note)]
    key = ", ".join(scalar(column.source) for column in table.key_columns)
    lines.append(f"    key: [{key}]")
    if table.replica_identity_declared:
        lines.append(f"    replica_identity: {_identity(table)}")
    lines.append("    columns:")
    lines += [f"      {scalar(column.source)}: {column.type}" for column in table.columns]
    lines += [f"      {scalar(name)}: {{exclude: true}}" for name in table.excluded]
    if proposal.omitted:
        lines += [f"    {line}" for line in _prose(f"generated: {', '.join(proposal.omitted)}")]
    return lines


def _identity(table: Table) -> str:
    if table.replica_identity != "index" or table.replica_identity_index is None:
        return table.replica_identity
    index = table.replica_identity_index
    return scalar(f"index {index if scalar(index) == index else identifier(index)}")


def _prose(text: str) -> list[str]:
    """Return a comment of one line, without the line breaks that names may contain."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return [f"## {shown}"]
