"""Application of a changelog's pending changes to its state."""
