"""Demo: a seeded shop whose changes are followed through the pipeline and verified row by row."""
