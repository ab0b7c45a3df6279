"""The life of one row: recorded facts, what explains them, and how both are shown."""
