"""`cvm prove`, `cvm commit` and `cvm verify-proof`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cvm.commands.failures import NO
from cvm.commands.options import FILE, JSON, PROGRAM, block
from cvm.commands.output import print_json, print_lines
from cvm.errors import BadInput

if TYPE_CHECKING:
    from cvm.export.r1cs.opening import Opening
    from cvm.export.r1cs.signals import Disclosed
    from cvm.program import IntArray
    from cvm.proof.validate import Proven

PUBLIC = click.option(
    "--public",
    "public",
    multiple=True,
    metavar="NAME",
    help="An input or output that a proof (r1cs) shows; it holds commitments of the others. Once for each name. "
    "`input:NAME` and `output:NAME` tell apart those of one name. Without it the outputs are shown; `none`, alone, shows nothing.",
)
ONE_SAMPLE = click.option(
    "--input",
    "input_path",
    type=FILE,
    required=True,
    metavar="X.npz",
    help="One sample: an .npz with each input by name, or .npy for a single input.",
)
REAL = click.option(
    "--real",
    is_flag=True,
    help="The inputs are real numbers, as `cvm run` takes them.",
)
OPENING_HELP = (
    "The salts of the commitments: read if the file is there, else drawn and written. "
    "Whoever has them can tell which numbers were bound."
)


@click.command(
    short_help="Prove that outputs come from a program, without its inputs.",
    epilog=block(
        "Example:",
        "cvm prove model.cvm --input x.npy --key model.zkey -o proof --opening salts.json",
        "cvm verify-proof model.cvm proof --key key.json",
    ),
)
@PROGRAM
@ONE_SAMPLE
@REAL
@PUBLIC
@click.option(
    "--opening",
    "opening_path",
    type=FILE,
    metavar="SALTS.json",
    help=f"{OPENING_HELP} Without this option they are forgotten, and nobody can tell.",
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
    program_path: Path,
    input_path: Path,
    real: bool,
    public: tuple[str, ...],
    opening_path: Path | None,
    key: Path,
    output: Path,
) -> None:
    """Write a proof that the program has these outputs for inputs that the proof does not show.

    The proof is Groth16's, made by snarkjs. `cvm export --to r1cs` writes the constraints, with the same --public, and its README
    has the commands for the keys. Public are the program id, what --public names, and a commitment of each other input and
    output: a hash (Poseidon) with a random salt.
    """
    from cvm.export.r1cs import files, snarkjs
    from cvm.export.r1cs.circuit import circuit_of
    from cvm.export.r1cs.disclosure import Disclosure
    from cvm.export.r1cs.opening import Opening
    from cvm.file import disk

    disk.require_new_folder(output)
    if not key.is_file():
        raise BadInput(
            f"{key}: No such file or directory; `cvm export --to r1cs` writes how to make a key"
        )
    form, sample = _one_sample(program_path, input_path, real=real)
    shown = Disclosure.chosen(form.program, public)
    opening = Opening.random(form.program)
    if opening_path is not None:
        opening = _opening(opening_path, form)
    circuit = circuit_of(form, sample, shown, opening)
    written = snarkjs.prove(key, files.witness(circuit))
    if opening_path is not None:  # first: a proof is of no use without them
        _write_opening(opening_path, opening)
    disk.write_folder(output, written)
    print_lines([f"wrote {output}: {', '.join(written)}"])


@click.command(
    short_help="Print the commitments of a sample, as proofs hold them.",
    epilog=block(
        "Example:",
        "cvm commit model.cvm --input x.npy --opening salts.json",
    ),
)
@PROGRAM
@ONE_SAMPLE
@REAL
@click.option(
    "--opening",
    "opening_path",
    type=FILE,
    required=True,
    metavar="SALTS.json",
    help=OPENING_HELP,
)
@JSON
def commit(
    program_path: Path,
    input_path: Path,
    real: bool,
    opening_path: Path,
    as_json: bool,
) -> None:
    """Print the commitments of the inputs, and of the outputs that the program has for them.

    Publish one to be bound by it: `cvm prove` with the same salts makes proofs about it, and `cvm verify-proof` prints it. To open
    it, give away the sample and the salts: anybody gets the same line from this command.
    """
    from cvm.export.r1cs.opening import commitments
    from cvm.reference import interpreter

    form, sample = _one_sample(program_path, input_path, real=real)
    opening = _opening(opening_path, form)
    outputs = interpreter.run(form, sample)
    committed = commitments(form, opening, sample, outputs)
    _write_opening(opening_path, opening)
    if as_json:
        print_json({"format": "cvm-commit-1", **committed})
    else:
        print_lines(_committed(committed))


def _one_sample(
    program_path: Path, input_path: Path, *, real: bool
) -> tuple[Proven, dict[str, IntArray]]:
    from cvm.file import format as file_format
    from cvm.proof.validate import validate
    from cvm.runtime.record import samples_of

    form = validate(file_format.read(program_path))
    samples = samples_of(form, input_path, real=real)
    if len(samples) != 1:
        raise BadInput(
            f"{input_path} holds {len(samples)} samples; a proof is of one"
        )
    return form, samples[0]


def _opening(path: Path, form: Proven) -> Opening:
    """The salts of a file, or new ones if there is none."""
    from cvm.export.r1cs import opening
    from cvm.file import disk

    if path.exists():
        salts = opening.read(path)
        salts.require_salts(form.program, path)
        return salts
    disk.require_writable([path], inputs=[])
    return opening.Opening.random(form.program)


def _write_opening(path: Path, opening: Opening) -> None:
    """Write new salts; those of a file stay there."""
    from cvm.file import disk

    if not path.exists():
        disk.write_all({path: disk.text_writer(opening.to_json())})
        print_lines([f"wrote {path}: keep it"], err=True)


def _committed(commitments: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [
        f"{what.removesuffix('s')} {name}: committed {digest}"
        for what, digests in commitments.items()
        for name, digest in digests.items()
    ]


@click.command(
    "verify-proof",
    short_help="Check a proof of `cvm prove`, and print what it shows.",
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
    """Check that what public.json shows comes from this program: outputs, inputs, and commitments of those that are hidden.

    Exit code 0 if snarkjs accepts the proof and its signals name this program; else 1. That the key belongs to this program's
    constraints is for you to know: make it yourself, or compare its SHA-256 with one that you trust.
    """
    from cvm.export.r1cs import keys, signals, snarkjs
    from cvm.file import format as file_format
    from cvm.proof.validate import check

    form = check(file_format.read(program_path))
    expected = file_format.program_id(form.program)
    public = signals.read(proof / "public.json")
    if key.suffix != ".json":
        raise BadInput(
            f"{key}: a verification key is a .json; `snarkjs zkey export verificationkey` makes it from a .zkey"
        )
    keys.require_contributions(key)
    named = signals.program_of(public)
    verdict = "valid"
    if named != expected:
        verdict = f"the signals name another program: {named or 'none'}"
    elif not snarkjs.is_valid(key, proof / "public.json", proof / "proof.json"):
        verdict = "the proof is not valid for these signals and this key"
    disclosed = signals.NOTHING
    if verdict == "valid":
        disclosed = signals.disclosed(form, public)
    if as_json:
        print_json(
            {
                "format": "cvm-verify-proof-1",
                "program": expected,
                "valid": verdict == "valid",
                "reason": "" if verdict == "valid" else verdict,
                **_json(disclosed),
            }
        )
    else:
        print_lines([verdict, *_lines(disclosed)])
    if verdict != "valid":
        ctx.exit(NO)


def _json(disclosed: Disclosed) -> dict[str, Any]:
    return {
        "outputs": {k: v.tolist() for k, v in disclosed.outputs.items()},
        "inputs": {k: v.tolist() for k, v in disclosed.inputs.items()},
        "commitments": disclosed.commitments,
    }


def _lines(disclosed: Disclosed) -> list[str]:
    from cvm.runtime import listing

    shown = {**disclosed.inputs, **disclosed.outputs}
    lines = listing.outputs_summary(shown, 1) if shown else []
    return [*lines, *_committed(disclosed.commitments)]
