"""A web server whose log comes into a lake: nginx, and what stands in for Fluent Bit."""
