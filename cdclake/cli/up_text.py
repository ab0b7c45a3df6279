"""Text of the answer of `cdclake up`: addresses first, and at the end what it changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cdclake.cli.aligned import counted, number
from cdclake.cli.output import warning_lines

_MAX_LISTED = 10
_OF_TABLES = ("joined", "left", "has other columns")

Answer = Mapping[str, Any]


def up_lines(answer: Answer) -> Iterator[str]:
    """Yield the addresses, the tables, and what `up` changed."""
    yield from _addresses(answer)
    yield from _tables(answer)
    for name, polled in answer.get("polled", {}).items():
        yield f"polled    {name}: {polled['error'] or str(polled['rows']) + ' rows'}"
    for kind, put in _put_streams(answer):
        yield f"{kind:<9} {put['source']} {put['stream']} -> {', '.join(put['tables'])}"
    for connector in answer.get("connectors", ()):
        failed = f": {connector['last_error']}" if connector["last_error"] else ""
        yield f"connector {connector['connector']} {connector['state']}{failed}"
    if not any(answer.get(key) for key in ("tables", "web_logs", "puts")):
        yield "no tables are streaming: run `cdclake up FILE`"
    yield ""
    yield from _changes(answer)
    if answer.get("paused"):
        yield "the lake is paused and stays so: `cdclake resume` starts the stream"
    yield from warning_lines(answer.get("warnings", ()))


def _changes(answer: Answer) -> Iterator[str]:
    changed = answer.get("changed", ())
    said = {f"{change['table']} {word}" for change in changed for word in _OF_TABLES}
    did = [line for line in answer["did"] if line not in said]
    if not did and not changed:
        yield "nothing to do: everything runs"
    yield from did
    for change in answer.get("relation_changes", ()):
        done = "it is read again" if change["did"] else change["remedy"]
        yield f"{change['source']}: {change['message']}; {done}"
    if len(changed) <= _MAX_LISTED:
        yield from map(change_line, changed)
    elif changed:
        yield _total(changed)
    if any(change["reading"] for change in changed):
        yield "the rows are still being read: `cdclake status --watch` shows how far they are"


def change_line(change: Answer) -> str:
    """Return what changed in one table, as `artworks: + rating integer, 5 rows read in 3 s`."""
    parts = [word for word in ("joined", "left") if change[word]]
    parts += [f"+ {column}" for column in change["added_columns"]]
    parts += [f"- {column}" for column in change["removed_columns"]]
    if change["left"]:
        parts.append("its data stays in the lake")
    if change["reading"]:
        estimated = change["estimated_rows"]
        of = "" if estimated is None else f" of about {number(estimated)}"
        parts.append(f"{number(change['rows'])}{of} rows read so far")
    elif change["rows"] is not None:
        seconds = change["seconds"]
        within = "" if seconds is None else f" in {seconds:.0f} s"
        parts.append(f"{counted(change['rows'], 'row')} read{within}")
    return f"{change['table']}: {', '.join(parts)}"


def _total(changed: Any) -> str:
    rows = sum(change["rows"] or 0 for change in changed)
    words = [
        f"{number(count)} {word}"
        for word in ("joined", "left")
        if (count := sum(1 for change in changed if change[word]))
    ]
    reading = sum(1 for change in changed if change["reading"])
    words += [f"{number(reading)} still being read"] if reading else []
    return f"{counted(len(changed), 'table')}: {', '.join([*words, f'{number(rows)} rows read'])}"


def _tables(answer: Answer) -> Iterator[str]:
    tables = answer["tables"]
    if len(tables) > _MAX_LISTED:
        yield f"tables    {number(len(tables))}; `cdclake status -v` lists them"
        return
    for table in tables:
        yield f"table     {table['source']} -> {table['table']}"


def _addresses(answer: Answer) -> Iterator[str]:
    source = answer["source"]
    if source is not None:
        own = source["password"] is not None
        yield (
            f"source    postgresql://{source['user']}@{source['host']}:{source['port']}"
            f"/{source['dbname']}"
            + ("   (password: the lake's secrets.properties, or --json)" if own else "")
        )
    if answer["kafka"] is not None:
        yield f"kafka     {answer['kafka']}"
    yield f"s3, glue  {answer['s3']}"
    if "firehose" in answer:
        yield f"firehose  {answer['firehose']}"
    yield f"clients   {answer['clients']}: credentials for your own clients"
    yield f"logs      {answer['logs']}"


def _put_streams(answer: Answer) -> Iterator[tuple[str, Answer]]:
    yield from (("web logs", logs) for logs in answer.get("web_logs", ()))
    yield from (("put table", put) for put in answer.get("puts", ()))
