"""Probe of a Glue job's environment, before anything expensive is deployed."""
