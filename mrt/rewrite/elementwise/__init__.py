"""Operators that work on each element alone."""
