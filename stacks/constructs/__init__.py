"""Constructs of one capability each. A construct grants nothing: its stack grants access."""
