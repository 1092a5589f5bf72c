"""`mrt probe`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cvm.commands.output import print_lines
from mrt.commands.named_files import check_files
from mrt.commands.options import (
    DATA_OPTIONS,
    MODEL_OPTIONS,
    PATH,
    examples,
    shared_options,
)
from mrt.commands.shared import print_warnings, progress_bars, read_settings

NOISE = (
    "no --data was given, so the probe's own ranges are of noise: if values reach their ends, `mrt calibrate` says which, "
    "and --widen, or a few samples that may be seen, help"
)


@click.command(
    short_help="Write a program that gathers ranges on samples that nobody may see.",
    epilog=examples(
        "mrt probe model.onnx --data public.npz -o probe.cvm",
        "cvm accumulate probe.cvm --input private.npz --real --backend spu -o extremes.npz",
        "mrt calibrate model.onnx --probe probe.cvm --extremes extremes.npz -o table.json",
    ),
)
@shared_options(*MODEL_OPTIONS, *DATA_OPTIONS)
@click.option(
    "--widen",
    type=click.FloatRange(1, 256),
    default=4,
    show_default=True,
    metavar="X",
    help="How many times as far from 0 a value may lie on the other samples: each doubling costs one bit of 16.",
)
@shared_options("input_dtype", "shape", "value", "config")
@click.option(
    "-o",
    "--output",
    type=PATH,
    required=True,
    metavar="PROBE.cvm",
    help="Where to write the probe.",
)
def probe(
    model: Path | None, output: Path, widen: float, **options: Any
) -> None:
    """Write a program whose only outputs are the greatest and least integer of each value of MODEL, so far.

    It computes with 16 bits, in formats from data that may be seen, or from noise. The owner of other samples runs it on these,
    alone or among parties (cvm accumulate, cvm party --accumulate): nothing comes out but two numbers a value for all samples
    together, and how many samples there were. mrt calibrate makes the table of them.
    """
    check_files(model, options)
    from cvm.file import disk
    from cvm.file import format as cvm_format
    from mrt import project
    from mrt.probe.probe import make_probe

    settings = read_settings(model, options)
    sources = [*settings.files, options["config"]]
    project.check_program_destination(output, sources)
    with progress_bars() as progress:
        result = make_probe(settings, widen=widen, progress=progress)
    data = cvm_format.encode(result.program)

    def write(file: Any) -> None:
        file.write(data)

    disk.write_all({output: write})
    print_lines(
        [
            f"wrote {output}: gathers {result.ranges} ranges; {len(result.program.instructions):,} instructions"
        ]
    )
    if result.synthetic:
        print_warnings([NOISE])
