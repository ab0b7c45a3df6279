"""N10, the race: from PostgreSQL to current rows, by this engine and by two other streams."""
