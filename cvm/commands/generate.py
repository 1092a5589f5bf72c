"""`cvm generate`: a decoder's tokens, one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cvm.commands.failures import NO
from cvm.commands.options import FILE, JSON, PROGRAM, block
from cvm.commands.output import print_json, print_lines
from cvm.errors import BadInput, brief

if TYPE_CHECKING:
    from cvm.runtime.decoder import Decoder
    from cvm.runtime.generation import Generation
    from cvm.runtime.machine import Machine
    from cvm.runtime.receipt import Mismatch, Receipt

TOKENS = re.compile("[0-9]{1,10}(,[0-9]{1,10})*")
ROLES = {
    "token": "The input that takes the token, where its name does not show it.",
    "position": "The input that takes the token's position, counted from 0.",
    "mask": "The input that marks the places in use, the last ones of its last axis.",
    "logits": "The output with one number for each token.",
}


def role_options(command: Any) -> Any:
    """An option for each role that an input or output can have."""
    for role, text in reversed(ROLES.items()):
        command = click.option(f"--{role}", role, metavar="NAME", help=text)(
            command
        )
    return command


@click.command(
    short_help="Generate tokens with a decoder, greedily.",
    epilog=block(
        "Example:",
        "cvm generate decoder.cvm --prompt-tokens 1,2,3 --n 64",
        "cvm generate decoder.cvm --prompt-tokens 1,2,3 --n 64 --receipt generated.json",
        "cvm generate decoder.cvm --prompt-tokens 1,2,3 --replay generated.json",
    ),
)
@PROGRAM
@click.option(
    "--prompt-tokens",
    "prompt",
    required=True,
    metavar="1,2,3",
    help="The tokens to begin with.",
)
@click.option(
    "--n",
    "count",
    type=click.IntRange(1),
    help="How many tokens to generate (default: 64, or as many as there is room for).",
)
@click.option(
    "--stop-token",
    "stop",
    type=click.IntRange(0),
    metavar="T",
    help="End after this token, if it comes earlier.",
)
@click.option(
    "-o",
    "output_path",
    type=FILE,
    metavar="OUT.npz",
    help="Write the arrays `prompt` and `tokens`; else the tokens are printed.",
)
@click.option(
    "--receipt",
    "receipt_path",
    type=FILE,
    metavar="R.json",
    help="Write digests of every step's inputs and outputs.",
)
@click.option(
    "--replay",
    "replay_path",
    type=FILE,
    metavar="R.json",
    help="Generate what a receipt is of, and compare every step: exit code 0 if all match, else 1.",
)
@role_options
@click.option(
    "--threads",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Threads that share a step; the tokens are the same for any number.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "reference", "native"]),
    default="auto",
    show_default=True,
    help="native: the C++ engine; reference: numpy.",
)
@JSON
@click.pass_context
def generate(
    ctx: click.Context,
    /,
    program_path: Path,
    prompt: str,
    count: int | None,
    stop: int | None,
    output_path: Path | None,
    receipt_path: Path | None,
    replay_path: Path | None,
    threads: int,
    engine: str,
    as_json: bool,
    **roles: str | None,
) -> None:
    """Generate tokens with a decoder, a transformer whose keys and values are inputs and outputs.

    The program reads one token a step, and the states that the step before gave. The token with the greatest
    logit is next; among equals the lowest. There are only integers, so every machine gives the same tokens.
    """
    from cvm.file import disk
    from cvm.file.suffixes import require_suffix
    from cvm.runtime import generation, receipt

    written = [path for path in (output_path, receipt_path) if path]
    if replay_path and written:
        raise BadInput(
            f"--replay compares and writes nothing: leave {written[0]} away"
        )
    if replay_path:
        _require_no_length(ctx)
    read = [program_path, *([replay_path] if replay_path else [])]
    disk.require_writable(written, inputs=read)
    for path, suffix in ((output_path, ".npz"), (receipt_path, ".json")):
        if path is not None:
            require_suffix(path, suffix)
    tokens = _tokens(prompt)
    decoder, machine = _open(program_path, engine, roles)
    if replay_path:
        stated = receipt.load(replay_path)
        mismatch = generation.first_mismatch(
            decoder, machine, tokens, stated, threads=threads
        )
        _print_replay(stated, mismatch, as_json=as_json)
        if mismatch:
            ctx.exit(NO)
        return
    continuation = generation.generate(
        decoder,
        machine,
        tokens,
        count or decoder.usual_count(len(tokens)),
        stop=stop,
        threads=threads,
        receipt=receipt_path is not None,
    )
    _write(continuation, output_path, receipt_path)
    _print_tokens(decoder, continuation, output_path, written, as_json=as_json)


def _require_no_length(ctx: click.Context) -> None:
    """BadInput if a length is given for a generation, beside a receipt that states it."""
    for name, option in (("count", "--n"), ("stop", "--stop-token")):
        if ctx.get_parameter_source(name) != ParameterSource.DEFAULT:
            raise BadInput(
                f"--replay runs the steps that the receipt has: leave {option} away"
            )


def _tokens(text: str) -> list[int]:
    """The numbers of a list with commas."""
    if not TOKENS.fullmatch(text):
        raise BadInput(
            f"--prompt-tokens {brief(text)}: expected numbers with commas between them, such as 1,2,3"
        )
    return [int(number) for number in text.split(",")]


def _open(
    path: Path, engine: str, roles: dict[str, str | None]
) -> tuple[Decoder, Machine]:
    from cvm.file import format as file_format
    from cvm.proof.validate import validate
    from cvm.runtime.decoder import Decoder
    from cvm.runtime.machine import choose

    form = validate(file_format.read(path))
    return Decoder.of(form, roles), choose(form, engine)


def _write(
    continuation: Generation, output: Path | None, receipt: Path | None
) -> None:
    import numpy as np

    from cvm.file import disk, npy
    from cvm.runtime.receipt import to_json

    writers: dict[Path, disk.WriteFunction] = {}
    if output:
        arrays = {
            "prompt": np.array(continuation.prompt, np.int32),
            "tokens": np.array(continuation.tokens, np.int32),
        }
        writers[output] = lambda file: npy.write_npz(file, arrays)
    if receipt and continuation.receipt:
        writers[receipt] = disk.text_writer(to_json(continuation.receipt))
    disk.write_all(writers)


def _print_tokens(
    decoder: Decoder,
    continuation: Generation,
    output: Path | None,
    written: list[Path],
    *,
    as_json: bool,
) -> None:
    from cvm.file import format as file_format

    if as_json:
        root = continuation.receipt.root.hex() if continuation.receipt else None
        program = file_format.program_id(decoder.form.program)
        facts = {
            "program": program,
            "prompt": list(continuation.prompt),
            "tokens": list(continuation.tokens),
            "root": root,
            "written": list(map(str, written)),
        }
        print_json({"format": "cvm-generate-1", **facts})
        return
    listed = [] if output else [",".join(map(str, continuation.tokens))]
    print_lines([*listed, *(f"wrote {path}" for path in written)])


def _print_replay(
    stated: Receipt, mismatch: Mismatch | None, *, as_json: bool
) -> None:
    from dataclasses import asdict

    from cvm.runtime import listing

    if as_json:
        facts = {
            "match": mismatch is None,
            "program": stated.program_id,
            "samples": len(stated.samples),
            "root": stated.root.hex(),
            "mismatch": asdict(mismatch) if mismatch else None,
        }
        print_json({"format": "cvm-replay-1", **facts})
        return
    print_lines(listing.replay_summary(stated, mismatch))
