"""`cvm accumulate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cvm.commands.options import (
    FILE,
    INPUT_HELP,
    PROGRAM,
    backend_options,
    block,
)
from cvm.commands.output import print_lines
from cvm.commands.run import chosen_options
from cvm.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from cvm.proof.validate import Proven
    from cvm.runtime.machine import Machine


@click.command(
    short_help="Run a program whose outputs are its next inputs.",
    epilog=block(
        "Example:",
        "cvm accumulate probe.cvm --input x.npz --real -o extremes.npz",
        "cvm accumulate probe.cvm --input x.npz --real --backend spu -o extremes.npz",
    ),
)
@PROGRAM
@click.option(
    "--input",
    "input_path",
    type=FILE,
    required=True,
    metavar="X.npz",
    help=INPUT_HELP,
)
@click.option(
    "--real",
    is_flag=True,
    help="Real numbers, by the scales in the program's metadata.",
)
@click.option(
    "-o",
    "output_path",
    type=FILE,
    required=True,
    metavar="OUT.npz",
    help="Where to write what the last sample gave.",
)
@backend_options
def accumulate(
    program_path: Path,
    input_path: Path,
    output_path: Path,
    backend: str | None,
    protocol: str | None,
    real: bool,
    secret_weights: bool,
    simulate: bool,
) -> None:
    """Run a program on samples, each with what the sample before gave, and write what the last one gives.

    An input goes on if an output has its name: the first sample gets its least integers. `mrt probe` writes such a program:
    it gathers the extremes of a model's values. Among parties (--backend spu, `cvm party --accumulate`) what goes on is shares,
    and nothing is opened but the last outputs.
    """
    from cvm.runtime.backends import open_backend
    from cvm.runtime.machine import choose

    options = chosen_options(backend, protocol, secret_weights, simulate)

    def machine(form: Proven) -> Machine:
        if backend is None or options is None:
            return choose(form, "auto")
        return open_backend(backend, options, form)

    accumulate_to(output_path, program_path, input_path, machine, real=real)


def accumulate_to(
    output: Path,
    program: Path,
    inputs: Path,
    open_machine: Callable[[Proven], Machine],
    *,
    real: bool,
) -> None:
    """Gather over the samples of a file, and write the result."""
    from cvm.file import disk, npy
    from cvm.file import format as file_format
    from cvm.proof.validate import validate
    from cvm.runtime import listing
    from cvm.runtime.accumulation import Carried
    from cvm.runtime.accumulation import accumulate as gather

    disk.require_writable([output], inputs=[program, inputs])
    if output.suffix != ".npz":
        raise BadInput(f"{output}: outputs are written as .npz; name it so")
    form = validate(file_format.read(program))
    carried = Carried.of(form)
    samples = carried.samples(inputs, real=real)
    machine = open_machine(form)
    outputs = gather(carried, machine, samples)
    disk.write_all({output: lambda file: npy.write_npz(file, outputs)})
    counted = listing.counted(len(samples), "sample")
    print_lines([f"wrote {output}: {', '.join(outputs)} of {counted}"])
