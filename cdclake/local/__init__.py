"""The complete lake on one machine, without Docker: processes, their files and their ports.

`stack` is the way in. Nothing imports this package but the command line, scripts and tests.
"""
