"""Table maintenance: compaction and removal of what neither readers nor writers need."""
