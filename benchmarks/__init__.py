"""Our speed beside that of peers, on the same data and storage, every end state compared."""
