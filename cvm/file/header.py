"""The header of a program file: all but the data of its constants. `cvm/SPEC.md`, section "File format"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cvm.errors import Malformed, brief
from cvm.file import cbor
from cvm.file.nibbles import packed_size
from cvm.instructions import BY_OPCODE, INSTRUCTIONS
from cvm.program import (
    DTYPE_CODES,
    DTYPES,
    MAX_ELEMENTS,
    MAX_RANK,
    Attribute,
    Input,
    Instruction,
    IntArray,
    Output,
    Program,
    TensorType,
    dtype_name,
    fits_4_bits,
)
from cvm.program.limits import (
    MAX_CONSTANTS,
    MAX_HEADER_BYTES,
    MAX_INPUTS,
    MAX_INSTRUCTIONS,
    MAX_NAME_BYTES,
    MAX_OUTPUTS,
)

DTYPE_NAMES = tuple(DTYPE_CODES)
PACKED_CODE = len(DTYPE_NAMES)
"""In place of i8's code: the elements have 4 bits each in the file."""
_NO_ATTRIBUTES: Mapping[
    str, Attribute
] = {}  # shared: a megabyte of instructions must not make a dict each
_KEYS = (
    "inputs",
    "outputs",
    "constants",
    "instructions",
)  # in bytewise order of their encodings
_ANY_VALUE = (0, MAX_INPUTS + MAX_CONSTANTS + MAX_INSTRUCTIONS - 1)


@dataclass(frozen=True)
class Header:
    """Everything of a program but the data of its constants and its metadata."""

    inputs: tuple[Input, ...]
    constants: tuple[TensorType, ...]
    instructions: tuple[Instruction, ...]
    outputs: tuple[Output, ...]
    packed: frozenset[int] = frozenset()

    @property
    def sizes(self) -> list[int]:
        """The bytes that each constant's elements take in the file."""
        return [
            packed_size(type_.elements)
            if index in self.packed
            else type_.elements * DTYPES[type_.dtype].itemsize
            for index, type_ in enumerate(self.constants)
        ]


def encode(program: Program) -> bytes:
    """The header's bytes; Malformed if no reader would accept them. The rules of validation are not applied."""
    fields: dict[str, cbor.Value] = {
        "inputs": [
            (entry.name, *_dtype_and_shape(entry.type), entry.lo, entry.hi)
            for entry in program.inputs
        ],
        "outputs": [(entry.name, entry.value) for entry in program.outputs],
        "constants": _encode_constants(program),
        "instructions": [
            _encode_instruction(entry) for entry in program.instructions
        ],
    }
    data = cbor.encode(fields)
    if len(data) > MAX_HEADER_BYTES:
        raise Malformed(
            f"the header has {len(data)} bytes; at most {MAX_HEADER_BYTES}"
        )
    decode(data, 0, packs=bool(program.packed))
    return data


def decode(data: bytes, origin: int, *, packs: bool) -> Header:
    """Read the header back; `origin` is its offset in the file, for messages. Format version 2 `packs` constants."""
    reader = cbor.CborReader(data, origin)
    reader.map("header", len(_KEYS), len(_KEYS))
    reader.key("inputs", "header")
    inputs = tuple(
        _input(reader) for _ in range(reader.array("inputs", 0, MAX_INPUTS))
    )
    reader.key("outputs", "header")
    outputs = tuple(
        _output(reader) for _ in range(reader.array("outputs", 0, MAX_OUTPUTS))
    )
    reader.key("constants", "header")
    start = reader.at
    stored = [
        _constant(reader, packs=packs)
        for _ in range(reader.array("constants", 0, MAX_CONSTANTS))
    ]
    packed = frozenset(
        index for index, (_, is_packed) in enumerate(stored) if is_packed
    )
    if packs and not packed:
        raise reader.fault(
            "no constant in 4 bits; without one the format version is 1", start
        )
    reader.key("instructions", "header")
    instructions = tuple(
        _instruction(reader)
        for _ in range(reader.array("instructions", 0, MAX_INSTRUCTIONS))
    )
    reader.end("the header's map")
    constants = tuple(type_ for type_, _ in stored)
    return Header(inputs, constants, instructions, outputs, packed)


def _type_of(array: IntArray) -> TensorType:
    try:
        return TensorType(dtype_name(array), array.shape)
    except KeyError:
        raise Malformed(
            f"a constant of dtype {array.dtype} cannot be written"
        ) from None


def _dtype_and_shape(type_: TensorType) -> tuple[int, tuple[int, ...]]:
    if type_.dtype not in DTYPE_CODES:
        raise Malformed(f"unknown dtype {brief(type_.dtype)}")
    return DTYPE_CODES[type_.dtype], type_.shape


def _encode_constants(program: Program) -> list[cbor.Value]:
    entries: list[cbor.Value] = []
    for index, array in enumerate(program.constants):
        code, shape = _dtype_and_shape(_type_of(array))
        if index in program.packed:
            if not fits_4_bits(array):
                raise Malformed(
                    f"constant {index} is to have 4 bits; these hold an i8 constant in -8..7"
                )
            code = PACKED_CODE
        entries.append((code, shape))
    unknown = sorted(
        index for index in program.packed if not 0 <= index < len(entries)
    )
    if unknown:
        raise Malformed(
            f"constant {unknown[0]} is to be packed; there are {len(entries)}"
        )
    return entries


def _type(reader: cbor.CborReader, dtype: str) -> TensorType:
    start = reader.at
    count = reader.array("shape", 0, MAX_RANK)
    type_ = TensorType(
        dtype,
        tuple(
            reader.integer("dimension", 1, MAX_ELEMENTS) for _ in range(count)
        ),
    )
    if type_.elements > MAX_ELEMENTS:
        raise reader.fault(
            f"shape {type_.shape} has {type_.elements} elements; at most {MAX_ELEMENTS}",
            start,
        )
    return type_


def _dtype(reader: cbor.CborReader) -> str:
    return DTYPE_NAMES[reader.integer("dtype code", 0, len(DTYPE_NAMES) - 1)]


def _input(reader: cbor.CborReader) -> Input:
    reader.array("input (name, dtype, shape, lo, hi)", 5, 5)
    name = reader.text("name of an input", MAX_NAME_BYTES)
    return Input(
        name,
        _type(reader, _dtype(reader)),
        reader.integer("lo"),
        reader.integer("hi"),
    )


def _output(reader: cbor.CborReader) -> Output:
    reader.array("output (name, value)", 2, 2)
    return Output(
        reader.text("name of an output", MAX_NAME_BYTES),
        reader.integer("value of an output", *_ANY_VALUE),
    )


def _constant(
    reader: cbor.CborReader, *, packs: bool
) -> tuple[TensorType, bool]:
    """The type of a constant, and whether it is stored in 4 bits."""
    reader.array("constant (dtype, shape)", 2, 2)
    most = PACKED_CODE if packs else PACKED_CODE - 1
    code = reader.integer("dtype code", 0, most)
    if code == PACKED_CODE:
        return _type(reader, "i8"), True
    return _type(reader, DTYPE_NAMES[code]), False


def _encode_instruction(
    instruction: Instruction,
) -> tuple[int, tuple[int, ...], list[cbor.Value]]:
    spec = INSTRUCTIONS.get(instruction.name)
    if spec is None:
        raise Malformed(f"unknown instruction {brief(instruction.name)}")
    if set(instruction.attributes) != set(spec.attributes):
        raise Malformed(
            f"{instruction.name}: attributes {brief([*instruction.attributes])}; expected {[*spec.attributes]}"
        )
    attributes = [
        _encode_attribute(instruction.name, kind, instruction.attributes[name])
        for name, kind in spec.attributes.items()
    ]
    return spec.opcode, instruction.operands, attributes


def _encode_attribute(
    instruction: str, kind: str, value: Attribute
) -> cbor.Value:
    words = _words(kind)
    if not words:
        return value
    if value not in words:
        raise Malformed(
            f"{instruction}: attribute {brief(value)}; expected one of {', '.join(words)}"
        )
    return words.index(str(value))


def _words(kind: str) -> tuple[str, ...]:
    """The words that a kind of attribute chooses from, in the order of their codes; none for numbers."""
    if kind == "dtype":
        return DTYPE_NAMES
    return tuple(kind[5:].split("|")) if kind.startswith("mode:") else ()


def _instruction(reader: cbor.CborReader) -> Instruction:
    reader.array("instruction (opcode, operands, attributes)", 3, 3)
    start = reader.at
    opcode = reader.integer("opcode", 0)
    spec = BY_OPCODE.get(opcode)
    if spec is None:
        raise reader.fault(f"unknown opcode {opcode}", start)
    count = reader.array("operands", 1, MAX_HEADER_BYTES)
    operands = tuple(
        reader.integer("operand", *_ANY_VALUE) for _ in range(count)
    )
    reader.array(
        f"attributes of {spec.name}", len(spec.attributes), len(spec.attributes)
    )
    if not spec.attributes:
        return Instruction(spec.name, operands, _NO_ATTRIBUTES)
    return Instruction(
        spec.name,
        operands,
        {
            name: _attribute(reader, name, kind)
            for name, kind in spec.attributes.items()
        },
    )


def _attribute(reader: cbor.CborReader, name: str, kind: str) -> Attribute:
    if kind == "int":
        return reader.integer(name)
    if kind == "bool":
        return reader.boolean(name)
    words = _words(kind)
    if words:
        return words[reader.integer(name, 0, len(words) - 1)]
    length = kind.removeprefix("ints")
    least, most = (int(length), int(length)) if length else (0, 2 * MAX_RANK)
    return tuple(
        reader.integer(name) for _ in range(reader.array(name, least, most))
    )
