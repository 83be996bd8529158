"""The named data sets, one source per file; ``registry`` lists them by name."""
