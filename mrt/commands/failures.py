"""Every failure of a command becomes one sentence on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from cvm.commands.group import VerboseGroup, printable_usage
from cvm.commands.output import print_lines
from mrt.errors import GateMissed, MrtError, NotProvable, TargetMissed

NO, BAD, INTERRUPTED, CLOSED_PIPE = 1, 2, 130, 141
NEGATIVE = (NotProvable, GateMissed, TargetMissed)
LONGEST_LINE = 500  # characters of a line of an error
MOST_PROBLEMS = (
    20  # lines of an error, besides the first and the hint at its end
)


class MrtCommands(VerboseGroup):
    """Turns every failure into one sentence on stderr and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        from cvm.errors import CvmError, Unproven

        try:
            return super().invoke(ctx)
        except MrtError as problem:
            code = NO if isinstance(problem, NEGATIVE) else BAD
            _fail(ctx, problem.lines[0], code, _shown(problem))
        except CvmError as problem:
            _fail(
                ctx, str(problem), NO if isinstance(problem, Unproven) else BAD
            )
        except click.UsageError as problem:  # click prints it
            raise printable_usage(problem) from None
        except RecursionError:
            _fail(ctx, "the model is nested too deeply", BAD)
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


def _fail(
    ctx: click.Context, first: str, code: int, more: Sequence[str] = ()
) -> NoReturn:
    print_lines([f"mrt: {_bounded(first)}", *map(_bounded, more)], err=True)
    ctx.exit(code)


def _shown(problem: MrtError) -> list[str]:
    """The lines behind the first: as many problems as a terminal shows, then the hint."""
    count = len(problem.problems)
    behind = problem.lines[1 + count :]
    if count <= MOST_PROBLEMS:
        return problem.lines[1:]
    more = f"  and {count - MOST_PROBLEMS} more"
    return [*problem.lines[1 : 1 + MOST_PROBLEMS], more, *behind]


def _bounded(line: str) -> str:
    """A line that the names of a model cannot fill the terminal with."""
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:LONGEST_LINE]}... ({len(line)} characters)"
