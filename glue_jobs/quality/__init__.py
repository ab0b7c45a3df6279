"""Quality rules of tables, checked over the lake."""
