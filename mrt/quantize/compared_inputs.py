"""Inputs that nothing but comparisons with constants and scalers of columns reads, as tables are.

A constant may be one that is looked up in a table, as trees compiled to tensors have it.
An integer of 32 bits costs a comparison no more than one of 8 bits, and little more where its
column is scaled. Columns of very different sizes share the scale of their input, so that 8 bits
would leave nothing of the small ones. Columns that are taken from a table may have other readers,
too, such as a logarithm: each then has a format of its own, or an octave code, made of all bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from mrt.exact.fixed_point import FloatArray
from mrt.graph.canonical_values import (
    constant_of,
    is_constant,
    name_of,
    shape_of,
)
from mrt.graph.notes import compared_of, indices_of, is_whole, shared_range_of
from mrt.graph.operators import COMPARISONS, LOGIC, LOOKUPS, MOVES_OF_ONE
from mrt.graph.values import (
    SEQUENCE_RANK,
    TABLE_RANK,
    producer,
    source_of_moves,
)
from mrt.quantize.looked_up_thresholds import looked_up
from mrt.quantize.options import FEW_BITS, QuantizeOptions
from mrt.quantize.scaled_tables import product_with_factors
from mrt.quantize.tensor import OUTPUT_BITS, WIDE_BITS, Format, wide_format
from mrt.table.table import MeasuredRange

_MOVES = MOVES_OF_ONE | LOOKUPS
FARTHEST = 2.0**12
"""How many times its range an input's format may reach, for what it is compared with."""
ROOM = 16.0
"""How many times the greatest constant an input may reach that is only compared."""
MOST_COLUMNS = 64
"""The most columns of a table of which some are taken; a flat picture and a piece of sound have more."""


@dataclass(frozen=True)
class ComparedInputs:
    """The constants that each input is compared with, the bits of each, and the names of inputs and of what moves them.

    `thresholds` has the names of constants that are looked up, and the input that is
    compared with each: they have its format. Columns that are `taken_apart` have other readers.
    """

    constants: Mapping[str, FloatArray]
    bits: int
    moved: frozenset[str]
    thresholds: Mapping[str, str] = field(default_factory=dict)
    only_compared: frozenset[str] = frozenset()  # inputs
    taken_apart: bool = False  # some input

    @property
    def wide(self) -> frozenset[str]:
        """The names of all values that have these bits."""
        return self.moved | frozenset(self.thresholds)

    def thresholds_of(self, name: str) -> list[str]:
        """Return the names of what is looked up to be compared with an input."""
        compared = self.thresholds.items()
        return [threshold for threshold, input_ in compared if input_ == name]

    def is_endless(self, name: str, format_: Format) -> bool:
        """Whether an input is only compared, all with what lies within its format: numbers beyond are as good as its ends."""
        constants = np.abs(self.constants[name])
        within = constants[np.isfinite(constants)] < format_.highest
        return name in self.only_compared and bool(within.all())

    def note(self) -> str:
        """Return what was decided, why, and how to have fewer bits."""
        names = ", ".join(f"'{name}'" for name in self.constants)
        inputs = "input" if len(self.constants) == 1 else "inputs"
        compares = all(array.size for array in self.constants.values())
        readers = "comparisons" if compares else "scalers of columns or casts"
        if self.taken_apart:
            readers = "scalers, casts and what takes some columns"
        return (
            f"{inputs} {names}: {self.bits} bits, since only {readers} read them, which cost a processor hardly more than with "
            f"{FEW_BITS} (--compared-bits {FEW_BITS} for encryption and proofs)"
        )

    def format(self, measured: MeasuredRange, name: str, scales: str) -> Format:
        """Return the format of an input: all bits for its range and what it is compared with.

        A constant far beyond the range, as the greatest float32, would take all bits from it, and so would numbers
        far beyond all that the input is only compared with.
        """
        numbers = [measured.min, measured.max]
        most = FARTHEST * max(map(abs, numbers))
        constants = self.constants[name]
        near = constants[np.abs(constants) <= most] if most else constants
        if name in self.only_compared and near.any():
            most = ROOM * float(np.abs(near).max())
            numbers = [max(measured.min, -most), min(measured.max, most)]
        numbers += near.tolist()
        range_ = MeasuredRange(
            min(numbers), max(numbers), min(numbers), max(numbers)
        )
        return wide_format(range_, (-math.inf, math.inf), scales)


def with_compared_bits(
    model: ir.Model, options: QuantizeOptions
) -> tuple[QuantizeOptions, str]:
    """Give `compared_bits` of 16 or fewer to these inputs and what moves them; return a note where they have more.

    An input with activation bits of its own keeps them.
    """
    bits = options.compared_bits
    if bits is None or bits > OUTPUT_BITS:
        compared = compared_inputs(model.graph, options)
        return options, compared.note() if compared.constants else ""
    wide = replace(options, compared_bits=WIDE_BITS)
    names = compared_inputs(model.graph, wide).moved
    options = options.with_bits_of_values(names, bits)
    return replace(options, compared_bits=None), ""


def compared_inputs(
    graph: ir.Graph, options: QuantizeOptions
) -> ComparedInputs:
    """Find the inputs of floats that only comparisons with constants and scalers of columns read, behind movements.

    There is none where they have as few bits as other values.
    """
    constants: dict[str, FloatArray] = {}
    moved, thresholds = set[str](), dict[str, str]()
    only_compared, taken_apart = set[str](), False
    bits = _bits(options)
    for value in graph.inputs if bits > OUTPUT_BITS else ():
        table = product_with_factors(value) or value
        readers = readers_of(table)
        names = map(name_of, (value, table))
        if readers is None or any(map(options.chooses_activation_bits, names)):
            continue
        if value.dtype == ir.DataType.FLOAT and not _is_integral(value):
            constants[name_of(value)] = readers.constants()
            moved |= readers.moved
            thresholds |= dict.fromkeys(readers.thresholds, name_of(value))
            taken_apart |= readers.taken_apart
            if readers.only_compare:
                only_compared.add(name_of(value))
    return ComparedInputs(
        constants,
        bits,
        frozenset(moved),
        thresholds,
        frozenset(only_compared),
        taken_apart,
    )


def _is_integral(value: ir.Value) -> bool:
    """Whether an input holds integers, such as indices, from which its format follows."""
    noted = (indices_of(value), compared_of(value))
    return is_whole(value) or any(note is not None for note in noted)


def _bits(options: QuantizeOptions) -> int:
    if options.compared_bits is not None:
        return options.compared_bits
    return options.activation_bits if options.has_few_bits else WIDE_BITS


@dataclass
class ComparedReaders:
    """What reads a value: names of what it is moved to, and what it is compared with.

    `thresholds` names constants that are looked up to be compared with it, `scaled` results of
    which each column is the value's times a number or plus one. `filled` are those of a Where
    that puts constants in the place of some of its numbers, `parts` columns that are taken from it;
    it is `taken_apart` where anything else reads one of these.
    """

    value: ir.Value
    filled: list[ir.Value] = field(default_factory=list)
    parts: list[ir.Value] = field(default_factory=list)
    moved: set[str] = field(default_factory=set)
    scaled: set[str] = field(default_factory=set)
    compared: list[FloatArray] = field(default_factory=list)
    thresholds: set[str] = field(default_factory=set)
    makes_categories: bool = False
    taken_apart: bool = False

    @property
    def only_compare(self) -> bool:
        """Whether no reader takes its numbers but comparisons."""
        takes_numbers = self.makes_categories or self.taken_apart
        return not self.scaled and not takes_numbers

    def constants(self) -> FloatArray:
        """Return all numbers that the input is compared with; none where nothing compares it."""
        return np.concatenate([np.zeros(0), *self.compared])

    def take(self, node: ir.Node, index: int) -> bool:
        """Add a reader that compares this operand, scales its columns or makes categories of it; return False for any other."""
        if _makes_categories(node):
            self.makes_categories = True
            return True
        if node.op_type == "Where" and self._replaces_some(node):
            self.filled.append(node.outputs[0])
            return True
        other = node.inputs[1 - index] if len(node.inputs) == 2 else None
        constant = None if index else constant_of(other)
        if node.op_type in COMPARISONS:
            return self._take_threshold(constant, other)
        if constant is None or not scales_columns(node, constant):
            return False
        self.scaled.add(name_of(node.outputs[0]))
        return True

    def _replaces_some(self, node: ir.Node) -> bool:
        """Whether a Where puts a constant in the place of what comparisons of the value find, such as -999 for unknown."""
        source = _source(self.value)
        asks_for_it = any(
            _source(asked) is source for asked in _compared_for(node.inputs[0])
        )
        return asks_for_it and any(map(is_constant, node.inputs[1:]))

    def follow(self, filled: ir.Value) -> list[ir.Value]:
        """Take the readers of what a Where fills, which moves the other numbers, and return what Wheres behind it fill.

        If it has other readers, it is only `scaled`.
        """
        behind = _readers_up_to_fills(filled)
        if behind is None:
            self.scaled.add(name_of(filled))
            return []
        self.add(behind)
        self.compared += _fills_of(filled)
        return behind.filled

    def join(self, joined: ir.Value) -> None:
        """Add the readers of what a Concat joins with others, if it has no others."""
        behind = _readers_up_to_fills(joined)
        if behind is not None:
            self.add(behind)
            self.filled += behind.filled

    def add(self, behind: ComparedReaders) -> None:
        """Add the readers of what the value is moved to."""
        self.moved |= behind.moved
        self.scaled |= behind.scaled
        self.compared += behind.compared
        self.thresholds |= behind.thresholds
        self.makes_categories |= behind.makes_categories
        self.taken_apart |= behind.taken_apart

    def _take_threshold(
        self, constant: FloatArray | None, other: ir.Value | None
    ) -> bool:
        lookup = looked_up(other) if constant is None else None
        if lookup is not None:
            names, constant = lookup
            self.thresholds.update(names)
        if constant is None:
            return False
        self.compared.append(constant.ravel().astype(np.float64))
        return True


def readers_of(value: ir.Value) -> ComparedReaders | None:
    """Return what moves the value, and what it is compared with; None if others read it."""
    readers = _readers_up_to_fills(value)
    if readers is None:
        return None
    waiting = list(readers.filled)
    for part in readers.parts:
        of_part = _readers_up_to_fills(part) or _readers_of_part(part)
        readers.add(of_part)
        waiting += of_part.filled
    while waiting:
        filled = waiting.pop()
        if name_of(filled) not in readers.moved:
            waiting += readers.follow(filled)
    is_read = readers.compared or not readers.only_compare
    return readers if is_read else None


def _readers_up_to_fills(value: ir.Value) -> ComparedReaders | None:
    """Return the readers in front of what a Where fills.

    Each value is visited once: what moves it may meet again.
    """
    waiting, readers = [value], ComparedReaders(value)
    while waiting:
        current = waiting.pop()
        if current.is_graph_output():
            return None
        if name_of(current) in readers.moved:
            continue
        readers.moved.add(name_of(current))
        for node, index in current.uses():
            if _takes_columns(node, index):
                readers.parts.append(node.outputs[0])
            elif _moves(node, index):
                waiting.append(node.outputs[0])
            elif not readers.take(node, index):
                return None
    return readers


def _readers_of_part(part: ir.Value) -> ComparedReaders:
    """Return the readers of columns of a table where others are among them, which have a format for these columns alone.

    What joins them with others keeps all bits only if nothing else reads it.
    """
    waiting, readers = [part], ComparedReaders(part, taken_apart=True)
    while waiting:
        current = waiting.pop()
        if name_of(current) in readers.moved:
            continue
        readers.moved.add(name_of(current))
        for node, index in current.uses():
            if node.op_type == "Concat":
                readers.join(node.outputs[0])
            elif _moves(node, index):
                waiting.append(node.outputs[0])
            else:
                readers.take(node, index)
    return readers


def _takes_columns(node: ir.Node, index: int) -> bool:
    """Whether a node takes some columns of a table that is an input, and no state."""
    table = node.inputs[index]
    if index or node.op_type not in ("Slice", "Gather") or table is None:
        return False
    shape, of_part = shape_of(table), shape_of(node.outputs[0])
    if not table.is_graph_input() or shared_range_of(table) is not None:
        return False
    is_table = len(shape) == TABLE_RANK and shape[1] <= MOST_COLUMNS
    return is_table and math.prod(of_part) < math.prod(shape)


def _source(value: ir.Value) -> ir.Value:
    """Return the value that was moved to this one, some of whose numbers may have been filled in between."""
    source = source_of_moves(value, _MOVES)
    while (fill := producer(source, "Where")) is not None:
        computed = [it for it in fill.inputs[1:] if not is_constant(it)]
        if len(computed) != 1 or computed[0] is None:
            break
        source = source_of_moves(computed[0], _MOVES)
    return source


def _fills_of(filled: ir.Value) -> Iterator[FloatArray]:
    """Yield the constants that a Where gives, for which a format must have room."""
    node = filled.producer()
    for value in node.inputs[1:] if node is not None else ():
        constant = constant_of(value)
        if constant is not None:
            yield constant.ravel().astype(np.float64)


def _compared_for(condition: ir.Value | None) -> Iterator[ir.Value]:
    """Yield the first operand of each comparison that a condition is made of."""
    waiting, visited = [condition], set[ir.Value | None]()
    while waiting:
        current = waiting.pop()
        if current in visited:
            continue
        visited.add(current)
        node = producer(current, *COMPARISONS, *LOGIC)
        operands = [] if node is None else node.inputs
        if node is None or node.op_type in LOGIC:
            waiting += operands
        elif operands[0] is not None:
            yield operands[0]


def _makes_categories(node: ir.Node) -> bool:
    """Whether a node casts columns of a table to integers, or one column that was taken by its number."""
    result = node.outputs[0]
    is_table = len(shape_of(result)) <= TABLE_RANK
    to_integers = result.dtype is not None and result.dtype.is_integer()
    return node.op_type == "Cast" and to_integers and is_table


def scales_columns(node: ir.Node, constant: FloatArray) -> bool:
    """Whether a node adds a number to each column of a table, or multiplies it by one; of sequences, to each channel on an axis."""
    shape = shape_of(node.outputs[0])
    if len(shape) not in (TABLE_RANK, SEQUENCE_RANK):
        return False
    axes = range(len(shape))[1:]
    by_channel = any(_lies_along(constant, axis, shape) for axis in axes)
    return node.op_type in ("Add", "Mul") and by_channel


def _lies_along(
    constant: FloatArray, axis: int, shape: tuple[int, ...]
) -> bool:
    """Whether a constant has one number for each place on one axis of a shape that it broadcasts to."""
    along = [1] * len(shape)
    along[axis] = shape[axis]
    missing = len(shape) - constant.ndim
    return [1] * missing + list(constant.shape) == along


def _moves(node: ir.Node, index: int) -> bool:
    """Whether the node moves the elements of this operand."""
    return node.op_type == "Concat" or (node.op_type in _MOVES and index == 0)
