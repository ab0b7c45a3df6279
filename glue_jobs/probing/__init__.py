"""Probe of a Glue job's surroundings, before anything expensive is deployed."""
