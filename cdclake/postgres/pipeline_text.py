"""A pipeline file, written as text from proposals.

The refused stand as comments: prose behind `##`, and behind `# ` the very lines that admit the
table. Whoever strips one `# ` from a block has a valid file.
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
    """A pipeline's name from the database's: what `name:` allows."""
    slug = re.sub(r"[^a-z0-9]+", "-", database.lower()).strip("-")
    if not slug or not slug[0].isalpha():
        slug = f"db-{slug}"
    slug = slug[:_MAX_PIPELINE_CHARACTERS].strip("-")
    return slug if len(slug) > 1 else f"{slug}-db"


def table_key(schema: str, table: str) -> str:
    """The table as a key of `tables`: a part with a dot or a quote is quoted like an identifier."""
    parts = (identifier(part) if set(part) & set('."') else part for part in (schema, table))
    return ".".join(parts)


def render_pipeline(database: str, proposals: Sequence[Proposal]) -> str:
    """The whole file."""
    refused = [proposal for proposal in proposals if proposal.reason]
    admitted = [proposal for proposal in proposals if not proposal.reason]
    lines = [
        f"## Written by `cdclake init`: {len(admitted)} tables flow as they are,"
        f" {len(refused)} are refused and stand at the end.",
        "## Look it over, then: cdclake validate FILE, and cdclake up FILE",
        "version: 1",
        f"name: {scalar(pipeline_name(database))}",
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
    """Reason and remedy as comments, and the lines that admit the table as comments, too."""
    lines = _prose(f"{proposal.source.source} is refused: {proposal.reason}")
    if proposal.declared is None:
        return lines + _prose(f"No line admits it; {proposal.remedy}")
    lines += _prose("These lines admit it, once the leading `# ` is removed:")
    if proposal.declared.replica_identity_declared:
        lines += _prose("(`up --source` prints the statements it needs, and runs none)")
    return lines + [f"# {line}" for line in entry_lines(proposal)]


def entry_lines(proposal: Proposal) -> list[str]:
    """The table's entry, indented to stand under `tables:`."""
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
    """A comment of one line, whatever line breaks a name may hold."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return [f"## {shown}"]
