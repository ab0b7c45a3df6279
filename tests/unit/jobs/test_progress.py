"""A table that refuses too much stops, whoever reads its rows."""

from glue_jobs.ingest.progress import TableProgress


def test_a_table_stops_at_one_refused_event_too_many():
    progress = TableProgress()
    assert not progress.note_refused(7, 10)
    assert not progress.note_refused(3, 10)
    assert (progress.state, progress.quarantined, progress.last_error) == ("streaming", 10, None)
    assert progress.note_refused(1, 10)
    assert (progress.state, progress.quarantined) == ("stopped", 11)
    assert "11 events refused, more than stop_table_after=10" in str(progress.last_error)
