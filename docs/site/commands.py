"""A hook of mkdocs: a page for each command of ours, made from what its --help says."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import cvm.cli
import mrt.cli

PROGRAMS = {"mrt": mrt.cli.cli, "cvm": cvm.cli.cli}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add reference/mrt.md and reference/cvm.md."""
    for name, group in PROGRAMS.items():
        text = "\n\n".join(page_of(group, name))
        files.append(
            File.generated(config, f"reference/{name}.md", content=text + "\n")
        )
    return files


def page_of(group: click.Group, name: str) -> Iterator[str]:
    """The parts of a page."""
    yield f"# The command {name}"
    settings = group.context_settings
    context = click.Context(group, info_name=name, **settings)
    yield from described(group, context)
    yield from subcommands(group, context, "##")


def subcommands(
    group: click.Group, above: click.Context, heading: str
) -> Iterator[str]:
    """Each command of a group, with its own."""
    for short, command in sorted(group.commands.items()):
        context = click.Context(command, parent=above, info_name=short)
        yield f"{heading} {context.command_path}"
        yield from described(command, context)
        if isinstance(command, click.Group):
            yield from subcommands(command, context, heading + "#")


def described(command: click.Command, context: click.Context) -> Iterator[str]:
    """What a command does, how it is called, its options, and the examples below them."""
    yield prose(command.help or "")
    yield block(" ".join(command.get_usage(context).split()[1:]), "text")
    for option in command.get_params(context):
        names, meaning = option.get_help_record(context) or ("", "")
        if meaning:
            said = escaped(" ".join(meaning.split()))
            yield f"`{names}`\n:   {said}"
    for part in re.split(r"\n\s*\n", command.epilog or ""):
        title, _, rest = part.replace("\b", "").strip("\n").partition("\n")
        if rest:
            yield escaped(title.strip())
            yield block(rest, "text")
        elif title.strip():
            yield prose(title)


def prose(text: str) -> str:
    """The paragraphs of a help text; one that a backspace begins keeps its lines."""
    parts = []
    for part in re.split(r"\n\s*\n", textwrap.dedent(text).split("\f")[0]):
        if part.lstrip().startswith("\b"):
            parts.append(block(part.replace("\b", ""), "text"))
        else:
            parts.append(escaped(" ".join(part.split())))
    return "\n\n".join(parts)


def escaped(text: str) -> str:
    """As text, whatever signs of Markdown stand in it."""
    return re.sub(r"[\\<>|*_\[\]&]", lambda sign: f"&#{ord(sign[0])};", text)


def block(text: str, language: str) -> str:
    """Lines as they are."""
    body = textwrap.dedent(text.strip("\n"))
    return f"```{language}\n{body}\n```"
