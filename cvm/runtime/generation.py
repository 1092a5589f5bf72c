"""Greedy generation: each step reads a token and the last states, and the greatest logit is the next token.

Everything is integers, so the tokens are the same on every machine; a receipt has one sample a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cvm.file import format as file_format
from cvm.program import IntArray
from cvm.proof.cost import cost
from cvm.runtime import execution
from cvm.runtime import receipt as receipts
from cvm.runtime.arguments import at_least_1
from cvm.runtime.decoder import Decoder
from cvm.runtime.execution import Result
from cvm.runtime.machine import Machine
from cvm.runtime.receipt import Mismatch, Receipt, SampleReceipt


@dataclass(frozen=True)
class Generation:
    """The tokens that followed a prompt, and the receipt of all steps if it was asked for."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    receipt: Receipt | None = None


@dataclass(frozen=True)
class DecoderStep:
    """What one step read and gave; `token` was chosen after it."""

    sample: dict[str, IntArray]
    result: Result
    token: int


def steps(
    decoder: Decoder, machine: Machine, prompt: Sequence[int], threads: int = 1
) -> Iterator[DecoderStep]:
    """The steps that read the prompt, then those that read what the step before chose, without end."""
    threads = at_least_1(threads, "threads")
    states = decoder.first_states()
    token, number = prompt[0], 0
    while True:
        sample = decoder.sample(number, token, states)
        (result,) = execution.run_samples(
            machine, [sample], threads=threads, first=number
        )
        chosen = decoder.next_token(result.outputs)
        yield DecoderStep(sample, result, chosen)
        states = decoder.next_states(result.outputs)
        number += 1
        token = prompt[number] if number < len(prompt) else chosen


def generate(
    decoder: Decoder,
    machine: Machine,
    prompt: Sequence[int],
    count: int,
    *,
    stop: int | None = None,
    threads: int = 1,
    receipt: bool = False,
) -> Generation:
    """The `count` tokens that follow a prompt, or fewer, up to and with the token `stop`."""
    decoder.require(prompt, count)
    price = cost(decoder.form).total
    tokens: list[int] = []
    noted: list[SampleReceipt] = []
    for number, step in enumerate(steps(decoder, machine, prompt, threads)):
        if receipt:
            noted.append(receipts.of_sample(step.sample, step.result, price))
        if number >= len(prompt) - 1:
            tokens.append(step.token)
        if len(tokens) == count or (tokens and step.token == stop):
            break
    run_receipt = _receipt(decoder, noted) if receipt else None
    return Generation(tuple(prompt), tuple(tokens), run_receipt)


def first_mismatch(
    decoder: Decoder,
    machine: Machine,
    prompt: Sequence[int],
    stated: Receipt,
    *,
    threads: int = 1,
) -> Mismatch | None:
    """Generate again and compare with a receipt: the first thing that differs, or None."""
    own_receipt = _receipt(decoder, [])
    least = max(len(stated.samples), len(prompt))
    mismatch = receipts.run_mismatch(
        stated,
        program_id=own_receipt.program_id,
        metadata=own_receipt.metadata,
        samples=least,
    )
    mismatch = mismatch or _kind_mismatch(stated, own_receipt)
    if mismatch:
        return mismatch
    decoder.require(prompt, least - len(prompt) + 1)
    price = cost(decoder.form).total
    run = steps(decoder, machine, prompt, threads)
    for number, (expected, step) in enumerate(
        zip(stated.samples, run, strict=False)
    ):
        actual = receipts.of_sample(step.sample, step.result, price)
        mismatch = receipts.sample_mismatch(number, expected, actual)
        if mismatch:
            return mismatch
    return receipts.root_mismatch(stated)


def _kind_mismatch(stated: Receipt, own_receipt: Receipt) -> Mismatch | None:
    """The first entry that a receipt of a generation cannot have: a replay must not vouch for what it does not compare."""
    backend = stated.backend and stated.backend.name
    for what, expected, actual in (
        (
            "the version of the receipt",
            str(stated.version),
            str(own_receipt.version),
        ),
        ("the metadata", stated.metadata, own_receipt.metadata),
        ("the back end", backend, None),
    ):
        if expected != actual:
            return Mismatch(what, expected or "nothing", actual or "nothing")
    for number, sample in enumerate(stated.samples):
        where = f"sample {number}"
        if sample.trace is not None:
            root = sample.trace.hex()
            return Mismatch(f"{where}, root of the trace", root, "nothing")
        if sample.clipped is not None:
            what = f"{where}, number of clipped values"
            return Mismatch(what, str(sample.clipped), "nothing")
    return None


def _receipt(decoder: Decoder, samples: Sequence[SampleReceipt]) -> Receipt:
    """With the digest of the metadata, which names the states and the integers that they begin with."""
    program = decoder.form.program
    return Receipt.of(
        file_format.program_id(program),
        file_format.metadata_digest(program),
        samples,
    )
