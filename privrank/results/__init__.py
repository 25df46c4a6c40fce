"""Frozen result classes: the release, numbers computed from it, tables and plots on demand."""
