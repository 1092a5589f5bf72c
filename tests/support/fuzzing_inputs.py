"""Seeded mutations of the files that go into a run: arrays, receipts and traces. Each is refused in words, or is taken."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from cvm.errors import CvmError
from cvm.file.npy import MAGIC
from cvm.program import (
    Input,
    Instruction,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
)
from cvm.runtime import boundary, receipt, trace
from cvm.runtime.arrays import ArrayFile
from cvm.runtime.receipt import Receipt, SampleReceipt
from cvm.runtime.trace import SampleTrace, Trace

MAX_SECONDS = 1.0
SHAPES = (
    *(b"(9223372036854775807, 3)", b"(18446744073709551616,)", b"(-1, 3)"),
    *(b"(True, 3)", b"(1e3, 3)", b"(0, 9223372036854775807)", b"(0x4, 3)"),
    *(b"(4, 3, 99999999999)", b"(0, 0, 10**9)", b"(4, 3)", b"(12,)", b"()"),
    *(b"(" + b"1," * 40 + b")", b"(" * 90, b"4", b"None"),
)
DTYPES = (
    *(b"'|O'", b"'<i4'", b"'>f8'", b"'<f2'", b"'|V8'", b"'|b1'", b"'<c16'"),
    *(b"'<U9'", b"'<i4,<i4'", b"'(999999999,)i4'", b"'<m8'", b"object"),
    *(b"[('a','<i4')]", b"'i" + b"9" * 30 + b"'", b"'<u8'", b"'|i1'"),
)
NUMBERS = (0, 1, 2**16, 10**6, 2**31, 2**32 - 1)
VALUES = (
    *(None, True, 0, -1, 2**64, 10**400, 1.5, "", [], {}, [[]], {"a": {}}),
    *("0" * 64, "F" * 64, "0" * 63 + "\n", "\u0660" * 64, "\ud800"),
    *("cvm-receipt-1", "cvm-receipt-2", "cvm-trace-1"),
)
KEYS = ("", "x", "root", "trace", "format", "\x00", "\x1b[2J", "y" * 5000)


def programs() -> tuple[Program, Program]:
    """One of two inputs and one of one, both with scales."""
    x = Input("x", TensorType("i32", (1, 3)), -1000, 1000)
    z = Input("z", TensorType("u8", (2, 2)), 0, 255)
    double = Instruction("add", (0, 0))
    scales = {"x": Meaning(0.5, 0), "z": Meaning(1.0, 0)}
    metadata = Metadata(scales, {"y": Meaning(0.25, 1)})
    one = Program((x,), (), (double,), (Output("y", 1),), metadata)
    cast = Instruction("cast", (1,), {"dtype": "i32"})
    outputs = (Output("y", 2), Output("w", 3))
    return one, Program((x, z), (), (double, cast), outputs, metadata)


def array_files() -> list[bytes]:
    """Files that suit one of the programs, or that almost do."""
    numbers = np.random.default_rng(1)
    x = numbers.integers(-1000, 1001, (4, 3)).astype(np.int32)
    z = numbers.integers(0, 256, (4, 2, 2)).astype(np.uint8)
    nan = np.full((4, 3), np.nan, np.float32)
    pairs = [
        *((x, z), (x[:1], z[0]), (x.astype(float), z.astype(">u2"))),
        *((x.astype(np.float16), z > 9), (np.asfortranarray(x), z)),
        *((nan, z), (nan + np.inf, z), (x.astype("U5"), z), (x[:0], z)),
        *((x.astype("M8[s]"), z), (x.astype(complex), z), (np.int32(3), z)),
    ]
    packed = [_npz(*pair, zipfile.ZIP_DEFLATED) for pair in pairs[:4]]
    alone = [x, x.astype(np.longdouble), x.astype(np.uint64) | 2**63, x.T]
    return [
        *(_npz(*pair, zipfile.ZIP_STORED) for pair in pairs),
        *packed,
        *(_npy(array) for array in alone),
        _npy(x, version=(2, 0)),
        _npy(x, version=(3, 0)),
        _npy(np.zeros(3, [("a", "i4"), ("b", "f8")])),
        _npy(np.array([{"a": 1}], object), allow_pickle=True),
    ]


def documents() -> list[tuple[bytes, Callable[[bytes, str], object]]]:
    """Receipts and a trace, and what reads each."""
    digest, other = b"\xaa" * 32, b"\xbb" * 32
    sample = SampleReceipt({"x": digest}, {"y": other, "z": digest}, 7, other)
    clipped = SampleReceipt({"x": digest}, {"y": other}, 7, None, 3)
    new = Receipt.of("11" * 32, "22" * 32, [sample, sample])
    real = Receipt.of("11" * 32, "22" * 32, [clipped, clipped])
    old = Receipt("11" * 32, None, 1, (sample,), digest, version=1)
    traces = (SampleTrace.of([digest, other]), SampleTrace.of([other]))
    texts = [
        *(
            (receipt.to_json(item), receipt.from_json)
            for item in (new, real, old)
        ),
        (trace.to_json(Trace("11" * 32, 3, traces)), trace.from_json),
    ]
    return [(text.encode(), read) for text, read in texts]


def fuzz_inputs(seed: int, count: int, folder: Path) -> dict[str, int]:
    """Run `count` mutations: how many ended in which way. AssertionError names the seed of a case that went wrong."""
    files, texts, path = array_files(), documents(), folder / "fuzz"
    outcomes: dict[str, int] = {}
    for case in range(seed, seed + count):
        random = Random(case)
        started = time.process_time()
        try:
            if random.random() < 0.6:
                path.write_bytes(mutated_file(random, random.choice(files)))
                outcome = _read_arrays(random, path)
            else:
                text, read = random.choice(texts)
                outcome = _read_document(mutated_text(random, text), read)
        except Exception as problem:
            raise AssertionError(
                f"case {case}: {type(problem).__name__}: {problem}"
            ) from problem
        assert time.process_time() - started < MAX_SECONDS, f"case {case}"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


def _read_arrays(random: Random, path: Path) -> str:
    program, real = random.choice(programs()), random.random() < 0.5
    names = tuple(item.name for item in program.inputs)
    try:
        arrays = ArrayFile(path, names)
        integers = boundary.read_inputs(program, arrays, real=real).integers
        samples = boundary.split_samples(program, integers)
    except CvmError as problem:
        assert 0 < len(str(problem)) < 2000
        return "arrays refused"
    for item in program.inputs:
        for sample in samples:
            assert sample[item.name].shape == item.type.shape
            assert (sample[item.name] >= item.lo).all()
            assert (sample[item.name] <= item.hi).all()
    return "arrays taken"


def _read_document(text: bytes, read: Callable[[bytes, str], object]) -> str:
    try:
        found = read(text, "f")
    except CvmError as problem:
        assert 0 < len(str(problem)) < 2000
        return "document refused"
    assert isinstance(found, Receipt | Trace)
    again = (
        receipt.to_json(found)
        if isinstance(found, Receipt)
        else trace.to_json(found)
    )
    assert read(again.encode(), "f") == found
    return "document taken"


def mutated_file(random: Random, data: bytes) -> bytes:
    """One to six changes of any bytes, of a header's shape or dtype, or of a number."""
    result = bytearray(data)
    for _ in range(random.choice((0, 1, 1, 2, 3, 6))):
        at = random.randrange(len(result) or 1)
        match random.randrange(8):
            case 0 if result:
                result[min(at, len(result) - 1)] ^= 1 << random.randrange(8)
            case 1:
                result[at : at + 1] = bytes(
                    (random.choice((0, 1, 8, 127, 255)),)
                )
            case 2 if random.random() < 0.3:
                del result[at:]
            case 3:
                result[at:at] = random.randbytes(random.randint(1, 20))
            case 4:
                del result[at : at + random.choice((1, 2, 4, 30))]
            case 5:
                number = random.choice(NUMBERS)
                result[at : at + 4] = number.to_bytes(4, "little")
            case 6:
                _change_header(
                    result,
                    rb"'shape': \([^)]*\)",
                    b"'shape': " + random.choice(SHAPES),
                )
            case _:
                _change_header(
                    result,
                    rb"'descr': '[^']*'",
                    b"'descr': " + random.choice(DTYPES),
                )
    return bytes(result)


def _change_header(data: bytearray, pattern: bytes, new: bytes) -> None:
    """In the first header of a `.npy` that has it, whose length stays if spaces at its end suffice."""
    found = re.search(pattern, data)
    if not found:
        return
    more = len(new) - (found.end() - found.start())
    data[found.start() : found.end()] = new
    end = data.find(b"\n", found.start())
    if more > 0 and data[end - more : end].isspace():
        del data[end - more : end]
    elif more < 0:
        data[end:end] = b" " * -more


def mutated_text(random: Random, text: bytes) -> bytes:
    """The JSON with other values at some places, or its bytes changed."""
    if random.random() < 0.3:
        return mutated_file(random, text)
    content = json.loads(text)
    for _ in range(random.choice((0, 1, 1, 2))):
        _change_tree(random, content)
    indent = random.choice((None, 0, 3))
    return json.dumps(content, indent=indent).encode()


def _change_tree(random: Random, node: Any) -> None:
    """Walk down to a random place and change what is there."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = random.choice(keys)
        if not isinstance(node[key], list | dict) or random.random() < 0.2:
            break
        node = node[key]
    match random.randrange(4):
        case 0:
            del node[key]
        case 1 if isinstance(node, dict):
            node[random.choice(KEYS)] = deepcopy(node[key])
        case 1:
            node.append(deepcopy(node[key]))
        case _:
            # A copy: a later change must not reach a list of VALUES.
            node[key] = deepcopy(random.choice((*VALUES, [node[key]])))


def _npz(x: Any, z: Any, compression: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, array in (("x", x), ("z", z)):
            archive.writestr(f"{name}.npy", _npy(np.asarray(array)))
    return stream.getvalue()


def _npy(array: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)
    assert stream.getvalue().startswith(MAGIC)
    return stream.getvalue()
