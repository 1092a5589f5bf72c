"""Compares the float model with its program."""
