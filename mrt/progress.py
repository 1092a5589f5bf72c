"""How long work reports its progress."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Takes the name of the work, the number of steps done, and the number in all."""
