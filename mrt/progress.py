"""The type of a function that reports the progress of long work."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""A function of the name of the work, the number of steps done, and the number of all steps."""


def no_progress(what: str, done: int, total: int) -> None:
    """Report no progress."""
