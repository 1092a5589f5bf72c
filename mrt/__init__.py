"""The converter: a float model becomes a program of integers."""
