"""What the page says beside its figures."""

from __future__ import annotations

TITLES = {
    "P1": "Changes from memory into the table, and one count over it",
    "P2": "The same, as the table grows",
    "P3": "Inserts only, into the log and into the table",
    "P4": "Kafka records to checked rows in memory",
    "P7": "Reading `_current` after many batches, and what maintenance costs",
    "P8": "Maintenance as the table grows",
    "P9": "P1 with S3 30 ms and Glue 80 ms away",
}
WORDS = {
    "P1": (
        "From decoded rows in memory to rows in the table itself, plus one count over the table, "
        "for everybody; the mean of Zipf keys and uniform ones. 70 % inserts, 25 % updates, 5 % "
        "deletes."
    ),
    "P2": "Ours alone, on a table of a tenth of the rows and on the whole one.",
    "P3": (
        "Ours and a bare append of the same rows in turn, in one session. `log` is `<t>_changes` "
        "with its fence and stamp, `long_log` the same with many files in it already, `table` is "
        "`<t>`. The figures on top are of the subject in which ours does worst."
    ),
    "P4": (
        "Ours and a bare `from_json` of the same columns in turn, in one session; ours checks "
        "every value, sums the batch up and quarantines what it refuses. The figures on top are "
        "of the subject in which ours does worst."
    ),
    "P7": (
        "Every column of every live row of `_current`, with maintenance on, beside the same table "
        "compacted whole; and the CPU of maintenance beside that of applying. The figures on top "
        "are of the subject in which ours does worst."
    ),
    "P8": (
        "Every action of the maintenance job, on log and table, after each 100,000 changes with "
        "Zipf keys."
    ),
    "P9": (
        "As P1. Tables lie in the local S3 and Glue, a round trip away; its own work is not in "
        "the CPU seconds. Delta and Hudi have no catalog to ask there."
    ),
}
INTRODUCTION = """# Benchmarks

Made by `make bench-full` from [the results](../benchmarks/results/full.json): no figure here is
typed by hand. All figures of a measure are from one run, on the same data and the same storage, a
local folder but for P9, with the same cores and memory. A figure counts only if the table held,
row for row, what an engine that took no part (DuckDB) worked out from the same changes; else it
says *wrong*. Seconds are medians over the batches after the warm-up, lowest and highest in
brackets.

With ours everything is on: the guard against late and replayed changes, tombstones, the position
of each value that may not be sent, stamps.
"""
