"""How many nodes a model may have: every later step takes time and memory for each."""

MOST_NODES = 1 << 16
COUNTING = "a node of more than 32 operands counts as several"


def weight(operands: int) -> int:
    """Return what a node counts; operands are replaced one by one, in time that grows as their square."""
    return 1 + (operands // 32) ** 2
