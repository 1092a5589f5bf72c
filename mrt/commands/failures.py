"""Every failure of a command becomes one sentence on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import click

from mrt.errors import GateMissed, MrtError, NotProvable, TargetMissed

NO, BAD, INTERRUPTED, CLOSED_PIPE = 1, 2, 130, 141
LONGEST_LINE = 500  # characters of a line of an error


class Commands(click.Group):
    """Turns every failure into one sentence on stderr and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        from cvm.errors import CvmError, Unproven

        try:
            return super().invoke(ctx)
        except (NotProvable, Unproven, GateMissed, TargetMissed) as problem:
            _fail(ctx, str(problem), NO)
        except (MrtError, CvmError) as problem:
            _fail(ctx, str(problem), BAD)
        except MemoryError:
            _fail(ctx, "not enough memory for this model", BAD)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(CLOSED_PIPE)
        except OSError as problem:
            _fail(
                ctx, f"{problem.filename or 'output'}: {problem.strerror}", BAD
            )
        except KeyboardInterrupt:
            _fail(ctx, "interrupted", INTERRUPTED)


def _fail(ctx: click.Context, message: str, code: int) -> NoReturn:
    click.echo(
        "mrt: " + "\n".join(map(_printable, message.split("\n"))), err=True
    )
    ctx.exit(code)


def _printable(line: str) -> str:
    """A line in which the names of a model neither command the terminal nor fill it."""
    shown = (
        line
        if len(line) <= LONGEST_LINE
        else f"{line[:LONGEST_LINE]}... ({len(line)} characters)"
    )
    return "".join(
        item
        if item.isprintable()
        else item.encode("unicode_escape", "surrogatepass").decode()
        for item in shown
    )
