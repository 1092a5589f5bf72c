"""Inputs, outputs, branches, loops, sequences and functions, resolved to plain nodes."""
