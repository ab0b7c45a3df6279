"""The help of the repairs: which of them to run when. `docs/concepts.md` compares them further."""

WHICH_REPAIR = """\
Which repair when:

resume: a table is stopped and its cause is fixed, or the stream is paused.

replay: events are in quarantine, and their cause is fixed.

redrive: Firehose could not deliver records.

resync: events are lost, or `verify` finds differences that stay; the table is read again.

job rebuild_tables: a state is wrong or gone, and its changelog is right.
"""
