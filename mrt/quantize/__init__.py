"""Decides scales and bits, and writes a program."""
