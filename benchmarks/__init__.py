"""Measurements and the demonstration; both run from the root, as in `make`."""
