"""One capability each. A construct grants nothing by itself: its stack says who may use it."""
