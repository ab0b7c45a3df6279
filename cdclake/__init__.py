"""The pure core of cdclake: names, the plan, SQL text and decisions; standard library only."""

__version__ = "0.1.0"
