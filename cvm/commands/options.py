"""The arguments and options that several commands of `cvm` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


class FilePath(click.Path):
    """The path of a file or folder; an empty text, such as a variable of the shell that is not set, is none."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """The text as a path."""
        if value == "":
            self.fail(
                "the path is empty; name a file or folder (is a variable of the shell not set?)",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


FILE = FilePath()
"""Without click's own check: unreadable files are refused in our own words."""


def block(title: str, *lines: str) -> str:
    """A part of a help text whose lines stay as they are."""
    return "\n".join(["\b", title, *(f"  {line}" for line in lines)])


PROGRAM = click.argument("program_path", metavar="P.cvm", type=FILE)
JSON = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON for other programs to read.",
)
INPUT_HELP = (
    "An .npz with one array per input, by name (`x` will do for an only input; other arrays are left alone), "
    "or an .npy for an only input. Many samples lie along the first axis. For a program that takes a picture's bytes, "
    "also a picture of its size, or a folder of them."
)
RUNNING = (
    click.option(
        "--input",
        "input_path",
        type=FILE,
        required=True,
        metavar="X.npz",
        help=INPUT_HELP,
    ),
    click.option(
        "--real",
        is_flag=True,
        help="Real numbers, by the scales in the program's metadata.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="With --real: refuse values outside the range of the calibration, which else are clipped and counted.",
    ),
    click.option(
        "--checked",
        is_flag=True,
        help="Do without a proof; trap (exit code 3) at the first overflow.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(1, 1024),
        default=1,
        show_default=True,
        help="Samples run at once, or if fewer, threads that share one; results are the same for any number.",
    ),
    click.option(
        "--max-cost",
        type=click.IntRange(1),
        metavar="N",
        help="Refuse a program that costs more a sample.",
    ),
    click.option(
        "--max-memory",
        type=click.IntRange(1),
        metavar="BYTES",
        help="Refuse a program whose values hold more at once (see `cvm cost`).",
    ),
    click.option(
        "--engine",
        type=click.Choice(["auto", "reference", "native", "xla"]),
        default="auto",
        show_default=True,
        help="native: the C++ engine; reference: numpy; xla: jax, on the processor; "
        "auto: native if it is installed and the program is proven.",
    ),
)


CLUSTER = click.option(
    "--cluster",
    "cluster",
    metavar="tcp://HOST:PORT",
    help="Spread the samples over the workers of this Dask cluster; the result is the same. A cluster is trusted.",
)


def running_options(command: Callable[..., None]) -> Callable[..., None]:
    """What `run` and `replay` share."""
    for option in reversed((*RUNNING, CLUSTER)):
        command = option(command)
    return command


BACKEND = (
    click.option(
        "--backend",
        metavar="NAME",
        help="Run on another engine. spu: among parties of which none has the inputs; "
        "concrete: by a server that computes on ciphertexts (docs/privacy.md).",
    ),
    click.option(
        "--protocol",
        metavar="NAME",
        help="Of --backend spu: aby3 (three parties; the default), semi2k (three, the first a trusted dealer), cheetah (two).",
    ),
    click.option(
        "--secret-weights",
        is_flag=True,
        help="With --backend spu: no party has the weights of convolutions and dense layers, either.",
    ),
    click.option(
        "--simulate",
        is_flag=True,
        help="With --backend concrete: simulate the encryption, which hides nothing, and is faster.",
    ),
)


def backend_options(command: Callable[..., None]) -> Callable[..., None]:
    """What `run` has for back ends."""
    for option in reversed(BACKEND):
        command = option(command)
    return command
