"""The ways a program or its use can fail. Type for programs, sentence for people; `cvm/SPEC.md` has the exit codes."""


class CvmError(Exception):
    """Base of every failure a user of the machine can meet."""


class Malformed(CvmError):
    """The bytes are not the canonical encoding of any program."""


class Invalid(CvmError):
    """A well-formed file breaks a numbered rule of the specification, e.g. `conv2d.C3`."""

    def __init__(self, rule: str, message: str, *, where: str = "") -> None:
        self.rule = rule
        self.message = message
        self.where = where
        super().__init__(f"{where + ': ' if where else ''}{message} [{rule}]")


class Unproven(Invalid):
    """Every rule of form holds, but a value's interval does not fit where it must."""


class Trap(CvmError):
    """A checked run met a value that does not fit. Proven programs cannot trap."""


class BadInput(CvmError):
    """An input array or option does not suit the program."""


class ClusterFailed(CvmError):
    """The machines of a cluster cannot be reached, or differ from this one."""


class MissingFile(BadInput, FileNotFoundError):
    """A file that was named does not exist."""

    def __str__(self) -> str:
        return str(self.args[0])


class ClippedInput(UserWarning):
    """Real values lay outside what a program's input can hold, and were clipped."""


def printable(text: str) -> str:
    """One line for a terminal, whatever names it holds: what ends a line, moves a cursor or hides a character is escaped."""
    return "".join(
        c
        if c.isprintable()
        else c.encode("unicode_escape", "surrogatepass").decode("ascii")
        for c in text
    )


def brief(value: object) -> str:
    """Text from a hostile program, cut to a bearable length."""
    try:
        text = repr(value)
    except ValueError:
        return "an integer of thousands of digits"
    return text if len(text) <= 80 else f"{text[:77]}..."
