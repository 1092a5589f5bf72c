"""Plan files, which libcvm runs without Python; `cvm/engine/library/plan_file.cpp` reads them.

A prefix of 16 bytes, a header of 64-bit words, then constants at multiples of 64 bytes. A text is its length and its
bytes, padded with zeros to whole words; a list is its length and its items. All integers are little-endian.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cvm.plan.encode import OperandTuple, operands_of_ends, step_tuple
from cvm.plan.fuse import fused
from cvm.plan.steps import Plan
from cvm.program import DTYPE_CODES, DTYPES, IntArray
from cvm.proof.validate import Proven

MAGIC = b"\x89CVMPLN\x01"  # the last byte is the format's version
WORD, LINE = 8, 64
Interval = tuple[int, int]


def encode(form: Proven, *, program_id: str, version: str) -> Iterator[bytes]:
    """The parts of the file that the library of this version of `cvm` takes."""
    identity = _text(version) + _text(program_id)
    header = identity + b"".join(_header(form, fused(form)))
    yield _padded(MAGIC + _words(len(header)) + header, LINE)
    for array in form.program.constants:
        little = array.dtype.newbyteorder("<")
        yield _padded(array.astype(little, copy=False).tobytes(), LINE)


def _header(form: Proven, plan: Plan) -> Iterator[bytes]:
    """What follows the versions: inputs, outputs, constants, steps."""
    program = form.program
    inputs, outputs = operands_of_ends(plan)
    yield _words(len(inputs))
    for port, operand in zip(program.inputs, inputs, strict=True):
        yield _port(port.name, operand, (port.lo, port.hi))
    yield _words(len(outputs))
    for result, operand in zip(program.outputs, outputs, strict=True):
        yield _port(result.name, operand, form.intervals[result.value])
    yield _words(plan.arena_bytes, len(program.constants))
    yield from map(_constant, program.constants)
    yield _words(len(plan.steps))
    for step in plan.steps:
        yield _step(step_tuple(plan, step))


def _port(name: str, operand: OperandTuple, interval: Interval) -> bytes:
    _, _, dtype, shape, _ = operand
    return _text(name) + _words(dtype) + _list(shape) + _words(*interval)


def _constant(array: IntArray) -> bytes:
    (dtype,) = (
        code
        for name, code in DTYPE_CODES.items()
        if DTYPES[name] == array.dtype
    )
    return _words(dtype) + _list(array.shape)


def _step(step: tuple[Any, ...]) -> bytes:
    opcode, operands, parameters, result, attributes, stages = step
    return b"".join(
        (
            _words(opcode, len(operands)),
            *map(_operand, operands),
            _list(parameters),
            _operand(result),
            _attributes(attributes),
            _words(len(stages)),
            *map(_stage, stages),
        )
    )


def _operand(operand: OperandTuple) -> bytes:
    room, position, dtype, shape, pitch = operand
    return _words(room, position, dtype) + _list(shape) + _words(pitch)


def _stage(stage: tuple[Any, ...]) -> bytes:
    opcode, sources, operand, parameters, attributes = stage
    return b"".join(
        (
            _words(opcode),
            _list(sources),
            _words(operand),
            _list(parameters),
            _attributes(attributes),
        )
    )


def _attributes(attributes: Mapping[str, Sequence[int]]) -> bytes:
    pairs = sorted((name.encode(), name) for name in attributes)
    return _words(len(pairs)) + b"".join(
        _text(name) + _list(attributes[name]) for _, name in pairs
    )


def _text(text: str) -> bytes:
    content = text.encode()
    return _words(len(content)) + _padded(content, WORD)


def _list(values: Sequence[int]) -> bytes:
    return _words(len(values), *values)


def _words(*values: int) -> bytes:
    return b"".join(
        value.to_bytes(WORD, "little", signed=True) for value in values
    )


def _padded(content: bytes, multiple: int) -> bytes:
    return content + bytes(-len(content) % multiple)
