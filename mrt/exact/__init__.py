"""Numbers that are the same on every machine: exactly rounded functions, certain intervals around them, ordered sums."""
