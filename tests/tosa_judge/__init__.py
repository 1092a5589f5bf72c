"""Arm's TOSA reference model and test generator as a judge: `make tosa`."""
