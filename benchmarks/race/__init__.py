"""N10, the race: from PostgreSQL to current rows, by us and by streams that others write."""
