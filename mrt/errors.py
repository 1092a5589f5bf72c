"""The exceptions that reach a user.

Each message is one sentence: what was found, where, what was expected, what to do.
"""

from collections.abc import Callable, Sequence


class MrtError(Exception):
    """Base of every failure a user of the converter can meet; exit code 2 unless a subclass has another.

    `lines` are what a command prints: the message and, of a failure with several parts, a line for each of its `problems`.
    """

    def __init__(
        self, message: str, problems: Sequence[str] = (), hint: str = ""
    ) -> None:
        self.problems = list(problems)
        self.lines = [
            message,
            *(f"  {problem}" for problem in problems),
            *([hint] if hint else []),
        ]
        super().__init__("\n".join(self.lines))

    def reword(self, change: Callable[[str], str]) -> None:
        """Put other words in the place of every line."""
        self.problems = list(map(change, self.problems))
        self.lines = list(map(change, self.lines))
        self.args = ("\n".join(self.lines),)


class BadModel(MrtError):
    """A model file that cannot be read or is not what it claims to be."""


class Unsupported(MrtError):
    """A model with features that the converter lacks.

    `problems` lists them, one line each, but for those that only follow from others.
    """

    def __init__(self, problems: list[str], hint: str = "") -> None:
        super().__init__(f"{len(problems)} unsupported:", problems, hint)


class BadData(MrtError):
    """Calibration or evaluation data that does not suit the model."""


class MissingModel(BadModel, FileNotFoundError):
    """A model's file that does not exist."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingData(BadData, FileNotFoundError):
    """A file or folder of samples that does not exist."""

    def __str__(self) -> str:
        return str(self.args[0])


class BadOption(MrtError):
    """A command-line option or configuration entry that cannot be used."""


class DoubtfulResult(UserWarning):
    """What `mrt.convert` warns of: its program may be worthless, and why. The commands print the same."""


class NotProvable(MrtError):
    """The program written cannot be proven; exit code 1."""


class GateMissed(MrtError):
    """A figure missed the limit of --require; exit code 1."""


class TargetMissed(MrtError):
    """No available precision meets the target; exit code 1.

    The target is that of --target-agreement, --target-drop or --target-snr.
    """
