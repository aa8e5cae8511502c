"""The kinds of files that rows are read from and written to: one module for each, found by the ends of their names."""
