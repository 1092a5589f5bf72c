"""Seeded mutations of program files and programs.

Each mutant must either be refused with a named error, or be a valid program.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import Any

import cbor2
import numpy as np

from cvm.errors import CvmError, Malformed
from cvm.file import format as file_format
from cvm.program import (
    DTYPE_RANGES,
    DTYPES,
    Input,
    Instruction,
    IntArray,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
    fits_4_bits,
)
from cvm.proof.validate import Proven, validate
from cvm.reference.interpreter import run
from cvm.runtime import native
from tests.support.cvm_programs import MAKERS, program_of, random_inputs
from tests.support.fuzzing_encodings import mutated_bytes, mutated_encoding
from tests.support.hostile_files import METADATA_MAGIC, padded

MAX_SECONDS = 1.0
RUNNABLE_ELEMENTS = 20_000  # a mutated program with more elements in all its values is validated but not run

INTEGERS = (
    *(
        0,
        1,
        -1,
        2,
        3,
        5,
        23,
        24,
        127,
        128,
        -128,
        -129,
        255,
        256,
        2**15,
        65535,
        65536,
        65537,
        2**20,
        2**20 + 1,
        2**24,
    ),
    *(
        2**30,
        2**31 - 1,
        2**31,
        -(2**31),
        -(2**31) - 1,
        2**32,
        2**40,
        2**62,
        2**63 - 1,
        2**63,
        -(2**63),
        -(2**63) - 1,
    ),
    *(2**64 - 1, 2**64, -(2**64)),
)
WORDS = (
    "",
    "x",
    "i8",
    "bool",
    "f32",
    "nearest",
    "\x00",
    "\x1b[2J",
    "\u202e",
    "y" * 256,
    "y" * 257,
    "ä" * 128,
    "ä" * 129,
)
OTHERS = (
    None,
    True,
    False,
    0.5,
    0.0,
    float("inf"),
    float("nan"),
    b"",
    b"\xff",
    [],
    {},
    [[]],
    [0] * 13,
    {"x": 1},
    {0: 1},
)
UNENCODABLE = (10**5000, -(10**5000), 2**100)


def corpus() -> list[Program]:
    """Return programs that use every instruction, some with metadata."""
    names = tuple(MAKERS)
    programs = [
        program_of((*names[at : at + 3], "rescale"), seed=at)
        for at in range(0, len(names), 3)
    ]
    return [*programs, *filter(lambda item: item.packed, map(packed, programs))]


def packed(program: Program) -> Program:
    """The program with every constant in 4 bits that fits."""
    fitting = (
        index
        for index, array in enumerate(program.constants)
        if fits_4_bits(array)
    )
    return replace(program, packed=frozenset(fitting))


def fuzz(seed: int, count: int) -> dict[str, int]:
    """Run `count` mutations, and return how many ended in which way.

    An AssertionError names the seed of a case that went wrong.
    """
    programs = corpus()
    encoded = [file_format.encode(program) for program in programs]
    outcomes: dict[str, int] = {}
    for case in range(seed, seed + count):
        random = Random(case)
        chosen = random.randrange(len(programs))
        kind = random.randrange(5)
        try:
            if kind < len(FILES):
                outcome = examine_bytes(FILES[kind](random, encoded[chosen]))
            else:
                outcome = examine_program(
                    mutated_program(random, programs[chosen])
                )
        except Exception as problem:
            raise AssertionError(
                f"case {case}: {type(problem).__name__}: {problem}"
            ) from problem
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


def examine_bytes(data: bytes) -> str:
    """Decode and validate bytes.

    Bytes that decode must be the encoding of the decoded program, and a proven program
    must run.
    """
    started = time.process_time()
    try:
        program = file_format.decode(data)
        assert file_format.encode(program) == data
        proven = validate(program)
    except CvmError as problem:
        assert 0 < len(str(problem)) < 1000 and str(problem).isprintable()
        return type(problem).__name__
    finally:
        assert time.process_time() - started < MAX_SECONDS
    _run(proven)
    return "proven"


def examine_program(program: Program) -> str:
    """Validate a program that was made in memory, and run it if it is proven.

    Validation must not rely on checks of the decoder.
    """
    started = time.process_time()
    outcome = "proven"
    try:
        validate(program)
    except CvmError as problem:
        assert 0 < len(str(problem)) < 1000
        outcome = type(problem).__name__
    assert time.process_time() - started < MAX_SECONDS
    try:
        data = file_format.encode(program)
    except Malformed:
        assert outcome != "proven" or program.metadata is not None
        return outcome
    decoded = examine_bytes(data)
    assert decoded == outcome
    return outcome


def _run(proven: Proven) -> None:
    if sum(type_.elements for type_ in proven.types) > RUNNABLE_ELEMENTS:
        return

    def observe(number: int, value: IntArray) -> None:
        low, high = proven.intervals[number]
        assert low <= int(value.min()) and int(value.max()) <= high
        assert (
            TensorType(proven.types[number].dtype, value.shape)
            == proven.types[number]
        )

    inputs = random_inputs(proven.program, 0)
    expected = run(proven, inputs, observe=observe)
    if native.available():
        found = native.Engine(proven).run(inputs)
        for name, array in expected.items():
            assert np.array_equal(found[name], array), name


def mutated_header(random: Random, data: bytes) -> bytes:
    """Replace one to three items of the header or metadata by hostile ones, and encode it."""
    end = 16 + int.from_bytes(data[8:16], "little")
    program, metadata = map(bytes, file_format.split(data))
    header = cbor2.loads(data[16:end])
    described = (
        cbor2.loads(metadata[16:])
        if metadata and random.random() < 0.5
        else None
    )
    for _ in range(random.randint(1, 3)):
        _mutate_tree(random, header if described is None else described)
    encoded = cbor2.dumps(header, canonical=True)
    if described is not None:
        changed = cbor2.dumps(described, canonical=True)
        metadata = METADATA_MAGIC + len(changed).to_bytes(8, "little") + changed
    start = data[:8] + len(encoded).to_bytes(8, "little") + encoded
    return padded(start) + program[len(padded(data[:end])) :] + metadata


def _mutate_tree(random: Random, node: Any) -> None:
    """Walk down to a random position and change the item there."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = random.choice(keys)
        child = node[key]
        if not isinstance(child, list | dict) or random.random() < 0.1:
            break
        node = child
    match random.randrange(6):
        case 0 if isinstance(node, list):
            node.append(child)
        case 1:
            del node[key]
        case 2 if isinstance(child, int):
            node[key] = child + random.choice((-1, 1))
        case _:
            node[key] = _hostile(random, child)


def _hostile(random: Random, value: Any) -> Any:
    """Return a hostile value, mostly of the same kind, so that deeper checks are reached."""
    if isinstance(value, int) and random.random() < 0.8:
        return random.choice(INTEGERS)
    if isinstance(value, str) and random.random() < 0.8:
        return random.choice(WORDS)
    return deepcopy(random.choice((*INTEGERS, *WORDS, *OTHERS)))


FILES = (mutated_bytes, mutated_bytes, mutated_header, mutated_encoding)
"""The ways to change the bytes of a file."""


def mutated_program(random: Random, program: Program) -> Program:
    """Replace one field of the frozen data by another value of its Python type."""
    change = random.choice(
        (
            _input,
            _output,
            _constant,
            _packed,
            _operands,
            _attributes,
            _name,
            _sequence,
            _metadata,
        )
    )
    return change(random, program)


def _integer(random: Random) -> int:
    return random.choice((*INTEGERS, *UNENCODABLE))


def _word(random: Random) -> str:
    return random.choice((*WORDS, "\ud800"))


def _replaced(
    random: Random, items: tuple[Any, ...], change: Callable[[Any], Any]
) -> tuple[Any, ...]:
    if not items:
        return items
    at = random.randrange(len(items))
    return (*items[:at], change(items[at]), *items[at + 1 :])


def _input(random: Random, program: Program) -> Program:
    def change(item: Input) -> Input:
        shape = _replaced(random, item.type.shape, lambda _: _integer(random))
        dtype = random.choice((*DTYPES, _word(random)))
        return random.choice(
            (
                replace(item, name=_word(random)),
                replace(item, lo=_integer(random)),
                replace(item, hi=_integer(random)),
                replace(
                    item,
                    lo=DTYPE_RANGES[item.type.dtype][0],
                    hi=DTYPE_RANGES[item.type.dtype][1],
                ),
                replace(item, type=TensorType(dtype, item.type.shape)),
                replace(item, type=TensorType(item.type.dtype, shape)),
                replace(
                    item, type=TensorType(item.type.dtype, item.type.shape * 3)
                ),
            )
        )

    return replace(program, inputs=_replaced(random, program.inputs, change))


def _output(random: Random, program: Program) -> Program:
    def change(item: Output) -> Output:
        return (
            Output(_word(random), item.value)
            if random.random() < 0.5
            else Output(item.name, _integer(random))
        )

    return replace(program, outputs=_replaced(random, program.outputs, change))


def _constant(random: Random, program: Program) -> Program:
    def change(item: IntArray) -> IntArray:
        shapes = (
            (0,),
            (),
            (1,),
            (1,) * 7,
            (3, 0),
            item.shape[::-1],
            (*item.shape, 1),
        )
        kind = random.choice(
            (
                *DTYPES.values(),
                np.dtype(np.float32),
                np.dtype(np.int64),
                np.dtype(">i4"),
                np.dtype("U1"),
            )
        )
        return random.choice(
            (
                np.resize(item, random.choice(shapes)),
                np.zeros(item.shape, kind),
                np.full_like(
                    item,
                    random.choice((-128, -1, 0, 1, 127))
                    if item.dtype != np.bool_
                    else 1,
                ),
                np.asfortranarray(item),
            )
        )

    return replace(
        program, constants=_replaced(random, program.constants, change)
    )


def _packed(random: Random, program: Program) -> Program:
    changes = (
        frozenset(range(len(program.constants))),
        frozenset(),
        frozenset({len(program.constants)}),
        frozenset({random.randrange(9)}),
    )
    return replace(program, packed=random.choice(changes))


def _operands(random: Random, program: Program) -> Program:
    def change(item: Instruction) -> Instruction:
        near = random.randrange(
            program.first_instruction + len(program.instructions)
        )
        other = random.choice((near, near, _integer(random)))
        operands = _replaced(random, item.operands, lambda _: other)
        return replace(
            item,
            operands=random.choice(
                (operands, operands, (), item.operands * 2, item.operands[:-1])
            ),
        )

    return replace(
        program, instructions=_replaced(random, program.instructions, change)
    )


def _attributes(random: Random, program: Program) -> Program:
    def change(item: Instruction) -> Instruction:
        changed = dict(item.attributes)
        if not changed:
            return replace(item, attributes={_word(random): 0})
        key = random.choice(list(changed))
        value = changed[key]
        if isinstance(value, tuple):
            several = _replaced(random, value, lambda _: _integer(random))
            changed[key] = random.choice(
                (several, several, several, (), value * 2, value[:-1])
            )
        else:
            changed[key] = random.choice(
                (_integer(random), _integer(random), _word(random), True, (0,))
            )
        if random.random() < 0.05:
            del changed[key]
        return replace(item, attributes=changed)

    return replace(
        program, instructions=_replaced(random, program.instructions, change)
    )


def _name(random: Random, program: Program) -> Program:
    name = random.choice((*MAKERS, _word(random)))
    return replace(
        program,
        instructions=_replaced(
            random, program.instructions, lambda item: replace(item, name=name)
        ),
    )


def _sequence(random: Random, program: Program) -> Program:
    field = random.choice(("inputs", "constants", "instructions", "outputs"))
    items = list(getattr(program, field))
    random.shuffle(items)
    return replace(
        program,
        **{
            field: random.choice(
                (tuple(items), (), (*items, *items), tuple(items[1:]))
            )
        },
    )


def _metadata(random: Random, program: Program) -> Program:
    scale = random.choice(
        (0.5, 0.0, -1.0, float("inf"), float("nan"), 5e-324, 1.7e308)
    )
    meaning = Meaning(scale, _integer(random), _word(random))
    metadata = Metadata(
        {_word(random): meaning},
        {},
        {_integer(random): meaning},
        (_word(random),),
        {_word(random): ""},
    )
    return replace(program, metadata=metadata)
