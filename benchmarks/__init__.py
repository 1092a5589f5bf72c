"""Measurements and the demonstration; run from the root, as `make` does."""
