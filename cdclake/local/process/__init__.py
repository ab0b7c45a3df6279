"""Processes of a local lake: the supervisor, its children, ports and the home folder."""
