"""`cvm prove` and `cvm verify-proof`."""

from __future__ import annotations

from pathlib import Path

import click

from cvm.commands.failures import NO
from cvm.commands.options import FILE, JSON, PROGRAM, block
from cvm.commands.output import print_json, print_lines
from cvm.errors import BadInput


@click.command(
    short_help="Prove that outputs come from a program, without its inputs.",
    epilog=block(
        "Example:",
        "cvm prove model.cvm --input x.npy --key model.zkey -o proof",
        "cvm verify-proof model.cvm proof --key key.json",
    ),
)
@PROGRAM
@click.option(
    "--input",
    "input_path",
    type=FILE,
    required=True,
    metavar="X.npz",
    help="One sample: an .npz with each input by name, or .npy for a single input.",
)
@click.option(
    "--real",
    is_flag=True,
    help="The inputs are real numbers, as `cvm run` takes them.",
)
@click.option(
    "--key",
    type=FILE,
    required=True,
    metavar="MODEL.zkey",
    help="The proving key that snarkjs made from the constraints of this program.",
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    required=True,
    metavar="DIR",
    help="The folder to write, new or empty: proof.json and public.json.",
)
def prove(
    program_path: Path, input_path: Path, real: bool, key: Path, output: Path
) -> None:
    """Write a proof that the program has these outputs for inputs that the proof does not show.

    The proof is Groth16's, made by snarkjs. `cvm export --to r1cs` writes the constraints, and its README has the commands
    for the keys. Public are the program id and the outputs.
    """
    from cvm.export.r1cs import files, snarkjs
    from cvm.export.r1cs.circuit import circuit_of
    from cvm.file import disk
    from cvm.file import format as file_format
    from cvm.proof.validate import validate
    from cvm.runtime.record import samples_of

    disk.require_new_folder(output)
    if not key.is_file():
        raise BadInput(
            f"{key}: No such file or directory; `cvm export --to r1cs` writes how to make a key"
        )
    form = validate(file_format.read(program_path))
    samples = samples_of(form, input_path, real=real)
    if len(samples) != 1:
        raise BadInput(
            f"{input_path} holds {len(samples)} samples; a proof is of one"
        )
    circuit = circuit_of(form, samples[0])
    written = snarkjs.prove(key, files.witness(circuit))
    disk.write_folder(output, written)
    print_lines([f"wrote {output}: {', '.join(written)}"])


@click.command(
    "verify-proof",
    short_help="Check a proof of `cvm prove`, and print the outputs.",
    epilog=block("Example:", "cvm verify-proof model.cvm proof --key key.json"),
)
@PROGRAM
@click.argument(
    "proof",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option(
    "--key",
    type=FILE,
    required=True,
    metavar="KEY.json",
    help="The verification key, of a setup that you trust.",
)
@JSON
@click.pass_context
def verify_proof(
    ctx: click.Context,
    program_path: Path,
    proof: Path,
    key: Path,
    as_json: bool,
) -> None:
    """Check that the outputs of public.json come from this program.

    Exit code 0 if snarkjs accepts the proof and its signals name this program; else 1. That the key belongs to this program's
    constraints is for you to know: make it yourself, or compare its SHA-256 with one that you trust.
    """
    from cvm.export.r1cs import keys, signals, snarkjs
    from cvm.file import format as file_format
    from cvm.proof.validate import check
    from cvm.runtime import listing

    form = check(file_format.read(program_path))
    expected = file_format.program_id(form.program)
    public = signals.read(proof / "public.json")
    if key.suffix != ".json":
        raise BadInput(
            f"{key}: a verification key is a .json; `snarkjs zkey export verificationkey` makes it from a .zkey"
        )
    keys.require_contributions(key)
    found = signals.program_of(public)
    verdict = "valid"
    if found != expected:
        verdict = f"the signals name another program: {found or 'none'}"
    elif not snarkjs.is_valid(key, proof / "public.json", proof / "proof.json"):
        verdict = "the proof is not valid for these signals and this key"
    outputs = {}
    if verdict == "valid":
        outputs = signals.outputs_of(form, public)
    if as_json:
        print_json(
            {
                "format": "cvm-verify-proof-1",
                "program": expected,
                "valid": verdict == "valid",
                "reason": "" if verdict == "valid" else verdict,
                "outputs": {k: v.tolist() for k, v in outputs.items()},
            }
        )
    else:
        lines = listing.outputs_summary(outputs, 1) if outputs else []
        print_lines([verdict, *lines])
    if verdict != "valid":
        ctx.exit(NO)
