"""Every failure of a command becomes one sentence on stderr and an exit code (`cvm/SPEC.md` section 8)."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import click

from cvm.commands.group import VerboseGroup, printable_usage
from cvm.commands.output import print_lines
from cvm.errors import CvmError, Trap, Unproven

NO, BAD, TRAPPED, INTERRUPTED, CLOSED_PIPE = 1, 2, 3, 130, 141


class CvmCommands(VerboseGroup):
    """Turns every failure into one sentence on stderr and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except CvmError as problem:
            _fail(
                ctx,
                "; ".join([str(problem), *getattr(problem, "__notes__", ())]),
                _exit_code(problem),
            )
        except click.UsageError as problem:  # click prints it
            raise printable_usage(problem) from None
        except MemoryError:
            _fail(
                ctx, "not enough memory for this program and these inputs", BAD
            )
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(CLOSED_PIPE)
        except OSError as problem:
            _fail(
                ctx, f"{problem.filename or 'output'}: {problem.strerror}", BAD
            )
        except KeyboardInterrupt:
            _fail(ctx, "interrupted", INTERRUPTED)


def _exit_code(problem: CvmError) -> int:
    if isinstance(problem, Unproven):
        return NO
    return TRAPPED if isinstance(problem, Trap) else BAD


def _fail(ctx: click.Context, message: str, code: int) -> NoReturn:
    print_lines([f"cvm: {message}"], err=True)
    ctx.exit(code)
