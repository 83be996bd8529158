"""Public data sets: one source per file, and a registry of named data sets drawn from them."""
