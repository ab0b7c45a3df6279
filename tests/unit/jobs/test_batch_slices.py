"""How pieces of a batch become slices that fit into memory."""

from cdclake.jobs.stream.batch_slices import Piece, combined, poll_bound


def test_small_pieces_share_a_slice_and_neighbours_become_one_range() -> None:
    pieces = [
        Piece("a", 0, 0, 10, 30),
        Piece("a", 0, 10, 20, 30),
        Piece("b", 0, 5, 6, 40),
        Piece("b", 0, 6, 9, 1),
    ]
    assert combined(pieces, 100) == [
        {"a": {0: (0, 20)}, "b": {0: (5, 6)}},
        {"b": {0: (6, 9)}},
    ]


def test_a_piece_that_is_too_large_itself_is_a_slice() -> None:
    pieces = [Piece("a", 0, 0, 1, 999), Piece("a", 0, 1, 2, 1), Piece("a", 0, 2, 3, 0)]
    assert combined(pieces, 100) == [{"a": {0: (0, 1)}}, {"a": {0: (1, 3)}}]


def test_nothing_is_no_slice() -> None:
    assert combined([], 100) == []


def test_a_poll_is_bounded_by_the_bytes_of_the_largest_records() -> None:
    small, large = Piece("a", 0, 0, 1000, 100_000), Piece("b", 0, 0, 10, 2 * 1024 * 1024)
    assert poll_bound([small]) == {"kafka.max.poll.records": "100"}
    assert poll_bound([small, large]) == {"kafka.max.poll.records": "20"}
    assert poll_bound([Piece("c", 0, 0, 1, 16 * 1024 * 1024)]) == {"kafka.max.poll.records": "1"}
    assert poll_bound([Piece("c", 0, 0, 5, 0)]) == {"kafka.max.poll.records": "100"}
