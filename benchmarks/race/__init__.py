"""The race, N10 and N10a: from PostgreSQL to current rows, by this engine and two other streams."""
