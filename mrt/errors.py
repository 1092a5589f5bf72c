"""The exceptions that reach a user.

Each message is one sentence: what was found, where, what was expected, what to do.
"""


class MrtError(Exception):
    """The base of every failure of the converter that reaches a user.

    Its exit code is 2 unless a subclass has another.
    """


class BadModel(MrtError):
    """A model file that cannot be read or is not what it claims to be."""


class Unsupported(MrtError):
    """A model with features that the converter lacks.

    `problems` lists every one, one line each.
    """

    def __init__(self, problems: list[str], hint: str = "") -> None:
        self.problems = problems
        # The name in a problem may contain line breaks.
        lines = "\n".join(
            "  " + problem.replace("\n", "\\n") for problem in problems
        )
        super().__init__(
            f"{len(problems)} unsupported:\n{lines}"
            + (f"\n{hint}" if hint else "")
        )


class BadData(MrtError):
    """Calibration or evaluation data that does not suit the model."""


class BadOption(MrtError):
    """A command-line option or configuration entry that cannot be used."""


class NotProvable(MrtError):
    """The program written cannot be proven; exit code 1."""


class GateMissed(MrtError):
    """A figure missed the limit of --fail-below; exit code 1."""


class TargetMissed(MrtError):
    """No available precision meets the target; exit code 1.

    The target is that of --target-agreement, --target-drop or --target-snr.
    """
