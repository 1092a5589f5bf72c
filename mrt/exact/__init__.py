"""Computes numbers that are the same on every machine.

These are functions to 34 digits in decimal, float64 intervals that certainly contain
them, sums in a fixed order, and scales as integers.
"""
