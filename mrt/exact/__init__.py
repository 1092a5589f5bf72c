"""Numbers that are the same on every machine.

Functions to 34 digits in decimal, float64 intervals that certainly contain them, sums in a
fixed order, and scales as integers.
"""
