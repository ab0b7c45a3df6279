"""Measures of the project's prose, and the budget of what is still to be rewritten."""
