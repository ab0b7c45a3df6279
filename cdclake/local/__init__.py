"""The complete lake on one machine, without Docker: processes, their files and their ports.

`lifecycle` and `lake.stack` are the entry points. Only the command line, scripts and tests import
this package.
"""
