"""`cvm export`."""

from __future__ import annotations

from pathlib import Path

import click

from cvm.commands.options import (
    FILE,
    JSON,
    PROGRAM,
    block,
)
from cvm.commands.output import print_json, print_lines
from cvm.commands.prove import PUBLIC


@click.command(
    short_help="Write a program as C, CUDA, ONNX, StableHLO, MLIR, TOSA, constraints, for the web, Concrete or Cortex.",
    epilog=block(
        "Examples:",
        "cvm export model.cvm --to c -o model_c",
        "cvm export model.cvm --to c -o digits_c --name digits --json",
        "cvm export model.cvm --to cuda -o model_cuda",
        "cvm export model.cvm --to web -o model_web",
        "cvm export model.cvm --to onnx -o model_onnx",
        "cvm export model.cvm --to stablehlo -o model_stablehlo",
        "cvm export model.cvm --to mlir -o model_mlir",
        "cvm export same.cvm --to mlir --table table.json -o model_mlir",
        "cvm export model.cvm --to tosa -o model_tosa",
        "cvm export classifier.cvm --to r1cs -o classifier_r1cs",
        "cvm export classifier.cvm --to r1cs --public none -o hidden_r1cs",
        "cvm export narrow.cvm --to concrete -o model_concrete",
        "cvm export tree.cvm --to concrete --hide-thresholds -o tree_concrete",
        "cvm export shift7.cvm --to cortex -o model_cortex",
    )
    + "\n\n"
    + block(
        "What is needed, and the page that explains it (docs/how_to of the repository):",
        "c          any compiler of C99: c.md",
        "concrete   a program for it (mrt convert --for fhe), concrete-python: concrete.md",
        "cortex     a program for it (mrt convert --scales shift --activation-bits 7): cortex.md",
        "cuda       nvcc; without a GPU a compiler of C++20: cuda.md",
        "mlir       IREE, or another compiler of TOSA in MLIR: mlir.md",
        "onnx       onnxruntime: onnx.md",
        "r1cs       snarkjs, and a small program: r1cs.md",
        "stablehlo  jax: stablehlo.md",
        "tosa       a compiler that reads TOSA: tosa.md",
        "web        clang and wasm-ld to export, then a browser: web.md",
    ),
)
@PROGRAM
@click.option(
    "--to",
    "target",
    type=click.Choice(
        [
            *("c", "concrete", "cortex", "cuda", "mlir", "onnx"),
            *("r1cs", "stablehlo", "tosa", "web"),
        ]
    ),
    required=True,
    help="c: C99 source without dependencies; concrete: for homomorphic encryption; "
    "cortex: the pair of files of CortexFoundation's runtime; "
    "cuda: kernels for GPUs by NVIDIA; "
    "mlir: MLIR of TOSA operators; "
    "onnx: a graph of integer operators for onnxruntime; "
    "r1cs: constraints of a proof system, with the witness of a sample; "
    "stablehlo: for jax and other compilers; "
    "tosa: a file of Arm's Tensor Operator Set; "
    "web: WebAssembly in a package of JavaScript, with a page.",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    metavar="DIR",
    help="The folder to write, new or empty.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="The base of file names and identifiers; else that of P.cvm.",
)
@click.option(
    "--table",
    "table_path",
    type=FILE,
    metavar="T",
    help="With mlir: the calibration table that the program was made with, whose minima and maxima become attributes.",
)
@click.option(
    "--hide-thresholds",
    is_flag=True,
    help="With concrete: the server computes what lies before the first sum, too, so that the client's files hold "
    "nothing of it, such as the thresholds of a tree. It takes more look-ups.",
)
@PUBLIC
@JSON
def export(
    program_path: Path,
    target: str,
    output: Path,
    name: str | None,
    table_path: Path | None,
    hide_thresholds: bool,
    public: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write a proven program for another machine, with the same answers to the byte.

    A test is written beside it: it runs what was written on a fixed sample, and compares the SHA-256 of each output with what
    the reference machine answered.
    """
    from cvm.file import calibration, disk
    from cvm.file import format as file_format
    from cvm.proof.validate import validate

    disk.require_new_folder(output)
    form = validate(file_format.read(program_path))
    options: dict[str, object] = {"--public": public} if public else {}
    if hide_thresholds:
        options["--hide-thresholds"] = True
    if table_path is not None:
        options["--table"] = calibration.read_ranges(table_path, form.program)
    # Slow to import, so that a file that is not there is named before.
    from cvm.export import targets

    base = name or program_path.stem
    artifact = targets.export(form, target, base, options)
    disk.write_folder(output, artifact.contents)
    if as_json:
        print_json(
            {
                "format": "cvm-export-1",
                "target": target,
                "program": file_format.program_id(form.program),
                "files": sorted(artifact.contents),
                "facts": dict(artifact.facts),
            }
        )
    else:
        print_lines([f"wrote {output}: {', '.join(artifact.contents)}"])
        print_lines(
            f"  {what.replace('_', ' '):<16}{count:>12,}"
            for what, count in artifact.facts.items()
        )
