"""Calls of an operator's machine to a deployment on AWS: its jobs, functions, tables and logs."""
