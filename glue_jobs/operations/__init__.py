"""Replay, resync and resume: one sequence per verb over a backend, and the stream's part."""
