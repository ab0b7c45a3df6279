"""What the page says beside its figures."""

from __future__ import annotations

from benchmarks.scale.run_tables import SCALE_TITLES

# Costs that have no peer.
COST_TITLES = {
    "N1": "The stream's batches with the states, read from Kafka",
    "N1a": "The stream's batches, changelogs only, read from Kafka",
    "N7": "Requests to S3 and Glue, 30 ms and 80 ms away, with the states",
    "N7a": "Requests to S3 and Glue, 30 ms and 80 ms away, changelogs only",
    "N8": "A batch of 300 tables with their states, read from Kafka",
    **SCALE_TITLES,
}
FITTED_COSTS = ("N1", "N1a")
# Measures of streams whose tables are not loaded before.
STREAM_COSTS = ("N1", "N1a", "N7", "N7a", "N8")
EMPTY = (
    "{measures}: the stream creates the tables, so they start empty. A state holds what the "
    "batches before have written, and updates and deletes of other rows find none. These figures "
    "are not of large tables.\n"
)
COMPARED = (
    "{measures}: after the last batch the rows of all changelogs were counted, and every state was "
    "compared row by row with what DuckDB worked out.\n"
)
COUNTED = (
    "{measures}: only the number of rows in all changelogs together was checked. No row was "
    "compared, and no state was read.\n"
)
FITTED = (
    "The CPU seconds of a batch are a + b x tables + c x changes, fitted by least squares to the "
    "medians of batches of these sizes:\n"
)
APPLYING = "Medians of applying a batch and of the count after it, by themselves:\n"
TITLES = {
    "P1": "Changes from memory into the table, and one count over it",
    "P2": "The same, as the table grows",
    "P3": "Inserts only, into the log and into the table",
    "P4": "Kafka records to checked rows in memory",
    "P5": "The first rows of a table into the lake",
    "P6": "From PostgreSQL to `_current`, many tables in one job",
    "P7": "Reading `_current` after many batches, and what maintenance costs",
    "P8": "Maintenance as the table grows",
    "P9": "P1 with S3 30 ms and Glue 80 ms away",
    "N10": "The race: from PostgreSQL to current rows, next to Flink SQL and a Spark stream",
    "N10a": "The race with S3 30 ms and Glue 80 ms away",
}
WORDS = {
    "P1": (
        "From decoded rows in memory to rows in the table itself, plus one count over the table, "
        "for everybody; the mean of Zipf keys and uniform ones. 70 % inserts, 25 % updates, 5 % "
        "deletes."
    ),
    "P2": "Ours alone, on tables of different sizes.",
    "P3": (
        "Ours and a bare append of the same rows in turn, in one session. `log` is `<t>_changes` "
        "with its fence and stamp, `long_log` the same with many files in it already, `table` is "
        "`<t>` alone, from changes that the log already has. The figures on top are of the worst "
        "subject of ours."
    ),
    "P4": (
        "Ours and a bare `from_json` of the same columns in turn, in one session; ours checks "
        "every value, summarizes the batch and quarantines refused events. Neither keeps the rows "
        "that are timed: ours drops them in the task, the peer writes them to Spark's `noop`. The "
        "rows that are compared are of a second decoding, not timed, by the same decoder; of the "
        "timed ones only the numbers of accepted and refused events are checked. The figures on "
        "top are those of the subject where ours is slowest against the peer."
    ),
    "P5": (
        "From the wish to stream (`cdclake up`, all servers running) to the commit that completes "
        "the table: by the bulk load, and by Debezium's snapshot through Kafka and the stream; "
        "each writes the changelog and the state. Starting the job's Java is in it. dlt 1.31 "
        "was given its pyarrow backend, parts of 100,000 rows and Iceberg (pyiceberg) in a folder; "
        "it writes one table, no changelog, and follows no changes afterwards. The same is true of "
        "a script of ADBC and pyiceberg, which appends 128 MiB of Arrow columns at a time in one "
        "transaction. CPU is that of everything, PostgreSQL included."
    ),
    "P6": (
        "The lake as `cdclake up` runs it, but with both of Java's compilers, as on AWS; "
        "transactions of 100 changes (70 % inserts, 25 % updates, 5 % deletes) over all tables in "
        "turn: twelve narrow, four of 49 columns, four with a text of 2,560 bytes that updates do "
        "not send; ten of the twenty have a UUID as key. Writer, PostgreSQL, Debezium, Kafka and "
        "Spark share the machine. A rate is held if for five minutes the median age of the last "
        "fifth's changes is not half a trigger above that of the second fifth; the trigger is 10 "
        "s, as by default. "
        "`debezium_to_kafka` is Debezium's way through changes that wait for it, alone. "
        "Freshness is measured with a trigger of 2 s, from commit to the first snapshot "
        "that shows the change in `_current`, to DuckDB and Spark alike; a reader's own query "
        "comes on top. Far away, S3 answers after 30 ms and Glue after 80 ms. `goal` is the "
        "target. The figures on top are of the subject where ours does worst."
    ),
    "P7": (
        "Every column of every live row of `_current`, with maintenance on, compared with the same "
        "table fully compacted; and the CPU of maintenance, compared with that of applying the "
        "thirty batches before it. Maintenance ran after the 30th, the 60th and the 90th of a "
        "hundred batches, so the last ten are not compacted when the table is read (by the file's "
        "default it runs once a day). The figures on top are of the subject where ours does "
        "worst."
    ),
    "P8": (
        "Every action of the maintenance job, on changelog and state, after each 100,000 changes. "
        "With Zipf keys a figure is of one such run; with uniform keys of ten together, since "
        "what they delete all over the table is paid for later. The figures on top are of the "
        "subject where ours does worst."
    ),
    "P9": (
        "As P1. Tables lie in the local S3 and Glue, a round trip away; its own work is not in "
        "the CPU seconds. Delta and Hudi have no catalog to ask there."
    ),
    "N10": (
        "Seconds are CPU seconds of the contender for 100,000 changes, at one rate for all. "
        "Every contender has the same source, connector, Kafka, S3 and Glue, which share one core "
        "with the writer; the contender has the other core. Twenty tables as in P6, each "
        "opened with 10,000 rows; transactions of 100 changes (70 % inserts, 25 % updates, 5 % "
        "deletes), and updates that draw their rows by Zipf's law. CPU is that of all processes of "
        "the contender, until two triggers after readers see the last change. A trigger, or a "
        "checkpoint, is due every 10 s. Freshness is the time until a reader of current rows sees "
        "a change: with ours from the changelog's commit on, which `_current` includes, with the "
        "others from the commit of the table. A rate is held if the median age of the changes of a "
        "trial's last three eighths is hardly above that of the three eighths before. In the end "
        "Spark counts and reads the current rows of all tables, and every row is compared with "
        "PostgreSQL."
    ),
    "N10a": "As N10, from far away.",
}
BARE_CACHED = (
    "These figures were measured before that: the peer's include a cache of its rows in Spark "
    "instead of `noop`, which favours ours; by how much is not measured. The number of refused "
    "events was not checked, only that there were some.\n"
)
OTHER_PROFILE = (
    "The profile in [profile.json](../benchmarks/results/profile.json) is not shown: it is of an "
    "earlier engine, and of a peer that kept its rows, so its figures are not comparable with "
    "these.\n"
)
TARGETS = """## Targets

Each target, for each subject that it has. N1 to N10 are the targets' own numbers; a target without
one has the name of its measure. A ratio of `>=` is how many times as fast
ours is, one of `<=` how many times as long it takes; P6 is compared with its goal in seconds. For
every missed target [performance](performance.md#missed-targets-and-why) gives the reason. The
targets of reading `<t>_current` are in [reading](reading.md#what-t_current-costs). The engine
before N1 was never measured in these units, so there is no baseline; nor was the time that all
measures take together recorded.
"""
# Of benchmarks/threads.py, in the page's order.
KINDS = {
    "tasks": "tasks of Spark or Flink",
    "driving": "the driver: planning queries and making their code; other threads",
    "compiling": "Java's compilers",
    "collecting": "garbage",
    "files": "Iceberg's own threads",
    "python": "Python and other programs",
    "ended": "programs that ended meanwhile",
}
PROFILED = (
    "Where the seconds of one batch go (`python -m benchmarks.profile`, at commit {commit}, by "
    "Spark's log of its events, which itself takes some time): the last batch's queries, each with "
    "the code that asked for it. *No query* is the time in which none ran: the driver planned, or "
    "read and committed metadata.\n"
)
INTRODUCTION = """# Benchmarks

Made by `make bench-full` from [the results](../benchmarks/results/full.json): no figure here is
typed by hand. All figures of a measure are from one run of one commit, on the same data, with the
same cores and memory, and but for P5 on the same storage: a local folder, or for P6, P9 and the
race the local S3 and Glue. In P5 dlt and ADBC write to a local folder, and ours to the local S3 and
Glue, whose CPU counts as ours. A figure of P1 to P9 and of the race counts only if the table held,
row for row, what an engine that took no part (DuckDB) worked out from the same changes, for P6 and
the race what the source held; else it says *wrong*. P4 states which rows are compared, and the
costs in absolute units how they were checked. Where batches are timed, every contender first runs
six that do not count, because Java still compiles their code; a stream runs for days. Seconds are
medians over the five that follow, lowest and highest in brackets.

With ours everything is on: the guard against late and replayed changes, tombstones, the position
of each value that may not be sent, stamps.
"""
