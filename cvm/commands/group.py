"""What the groups of commands of `cvm` and `mrt` share: -q and -v for every command, and `help` as a command."""

from __future__ import annotations

from copy import copy
from typing import Any

import click

from cvm.commands.output import QUIET, VERBOSE, print_lines
from cvm.errors import brief, printable


class VerboseGroup(click.Group):
    """A group whose commands take -q and -v, and that has a command `help`."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with -q and -v."""
        is_group = isinstance(cmd, click.Group)
        super().add_command(cmd if is_group else _with_verbosity(cmd), name)

    def get_command(
        self, ctx: click.Context, cmd_name: str
    ) -> click.Command | None:
        """The command of this name; `help` is not listed."""
        if cmd_name == "help":
            return _help_of(self)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an option of it that is given twice, and takes one value, is refused."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group):
            _require_single_values(ctx, command, name, rest)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a file or number too many is refused with the way to name it."""
        try:
            return super().invoke(ctx)
        except click.UsageError as problem:
            way = _way_to_name_it(problem)
            if not way:
                raise
            raise click.UsageError(problem.message + way, problem.ctx) from None


def printable_usage(problem: click.UsageError) -> click.UsageError:
    """The same in one line, as click prints it; where a group is called without a command, its help."""
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        return problem
    message = problem.format_message().replace("\n\t", " ")
    return click.UsageError(printable(message), problem.ctx)


def _require_single_values(
    parent: click.Context,
    command: click.Command,
    name: str | None,
    args: list[str],
) -> None:
    """Raise UsageError for an option with several values, of which click would take the last."""
    single = {str(it.name): it for it in command.params if _takes_one_value(it)}
    reader = copy(command)
    reader.params = [
        _repeatable(it) if it.name in single else it for it in command.params
    ]
    # What else is wrong is said when the arguments are read in earnest.
    context = click.Context(
        reader, parent=parent, info_name=name, resilient_parsing=True
    )
    given, _, _ = reader.make_parser(context).parse_args(args=list(args))
    for key, option in single.items():
        values = given.get(key)
        if isinstance(values, list) and len(values) > 1:
            flag = max(option.opts, key=len)
            listed = " and ".join(map(brief, values))
            raise click.UsageError(
                f"Option '{flag}' is given {len(values)} times, with {listed}; it takes one value, so give it once.",
                context,
            )


def _takes_one_value(parameter: click.Parameter) -> bool:
    return (
        isinstance(parameter, click.Option)
        and not parameter.multiple
        and not parameter.is_flag
        and not parameter.count
    )


def _repeatable(parameter: click.Parameter) -> click.Parameter:
    """The same option, whose values are listed."""
    several = copy(parameter)
    several.multiple = True
    return several


_FILES = ("--data", "--input", "--table", "--params", "--receipt", "--output")


def _way_to_name_it(problem: click.UsageError) -> str:
    """How to give a surplus argument of a command line instead; empty if that is not known, and for other problems."""
    what, _, extra = problem.message.partition("(")
    if not what.startswith("Got unexpected extra argument") or not problem.ctx:
        return ""
    if extra.startswith(tuple("-0123456789")):
        return ". The numbers of one option are joined by commas: 1,2,3"
    names = {
        name
        for parameter in problem.ctx.command.params
        for name in parameter.opts
    }
    files = [name for name in _FILES if name in names]
    return f". Other files are named by {', '.join(files)}" if files else ""


def _with_verbosity(command: click.Command) -> click.Command:
    """The command, with the options -q and -v."""
    for key, flag, text in (
        (
            QUIET,
            "quiet",
            "Print no summary, notes or progress, only what --json prints, warnings and errors.",
        ),
        (
            VERBOSE,
            "verbose",
            "Say on stderr what is done, and how long it took.",
        ),
    ):
        command.params.append(
            click.Option(
                [f"-{flag[0]}", f"--{flag}"],
                is_flag=True,
                expose_value=False,
                callback=_setter(key),
                help=text,
            )
        )
    return command


def _setter(key: str) -> Any:
    def set_in_context(
        context: click.Context, parameter: click.Parameter, value: bool
    ) -> None:
        context.meta[key] = value

    return set_in_context


def _help_of(group: click.Group) -> click.Command:
    @click.command("help")
    @click.argument("names", nargs=-1, metavar="[COMMAND]")
    @click.pass_context
    def show_help(context: click.Context, names: tuple[str, ...]) -> None:
        """Print the help of the program, or of one of its commands."""
        shown, of = group, context.parent
        assert of is not None
        for name in names:
            command = shown.get_command(of, name)
            if command is None:
                raise click.UsageError(f"No such command {name!r}.", of)
            of = click.Context(command, info_name=name, parent=of)
            if isinstance(command, click.Group):
                shown = command
        print_lines(of.get_help().splitlines())

    return show_help
