"""Refresh of derived tables: the result of a query over the lake, stored and kept up to date."""
