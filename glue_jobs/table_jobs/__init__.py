"""The frame of jobs that go over tables and end."""
