"""The demo: a seeded shop that is changed, watched through every hop, and proved row for row."""
