"""What JavaScript needs of a program: its ports, digests and cost, and the root of its test's receipt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cvm.errors import BadInput
from cvm.export.samples import samples_of
from cvm.file import format as file_format
from cvm.program import Meaning, TensorType
from cvm.proof.cost import WEIGHTS_VERSION, cost
from cvm.proof.validate import Proven
from cvm.reference import interpreter
from cvm.runtime.boundary import is_endless
from cvm.runtime.receipt import Receipt, SampleReceipt, digests_of

MOST = 2**53 - 1  # that a number of JavaScript holds exactly


def facts_of(form: Proven) -> dict[str, Any]:
    """The facts, as JSON."""
    program, price = form.program, cost(form).total
    if price > MOST:
        raise BadInput(
            f"the program costs {price:,} a sample; the target web counts to {MOST:,}"
        )
    meta = program.metadata
    inputs = [
        _port(
            port.name,
            port.type,
            (port.lo, port.hi),
            meta.inputs if meta else {},
        )
        | {"endless": is_endless(program, port.name)}
        for port in program.inputs
    ]
    outputs = [
        _port(
            port.name,
            form.types[port.value],
            form.intervals[port.value],
            meta.outputs if meta else {},
        )
        for port in program.outputs
    ]
    return {
        "program": file_format.program_id(program),
        "metadata": file_format.metadata_digest(program),
        "cost": price,
        "cost_weights": WEIGHTS_VERSION,
        "inputs": inputs,
        "outputs": outputs,
        "labels": list(meta.labels) if meta else [],
        "test_root": _test_root(form, price),
    }


def _port(
    name: str,
    type_: TensorType,
    interval: tuple[int, int],
    meanings: Mapping[str, Meaning],
) -> dict[str, Any]:
    meaning = meanings.get(name)
    return {
        "name": name,
        "dtype": type_.dtype,
        "shape": list(type_.shape),
        "lo": int(interval[0]),
        "hi": int(interval[1]),
        "scale": meaning.scale if meaning else None,
        "zero_point": meaning.zero_point if meaning else None,
        "factors": list(meaning.channels) or None if meaning else None,
    }


def _test_root(form: Proven, price: int) -> str:
    """The root of the reference machine's receipt for the sample of the test."""
    program = form.program
    inputs = samples_of(program)
    outputs = interpreter.run(form, inputs)
    entry = SampleReceipt(digests_of(inputs), digests_of(outputs), price)
    identity = file_format.program_id(program)
    return Receipt.of(identity, None, [entry]).root.hex()
