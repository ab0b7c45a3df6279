"""Framework of the jobs that process table by table and end."""
