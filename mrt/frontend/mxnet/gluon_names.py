"""Match a parameter file with Gluon's own names to the symbol, where the match is certain.

`save_parameters` names parameters by their position in the block (features.0.weight). The
older `save_params` writes the symbol's names without their common prefix.

The file lists layers in the order in which they were added to their blocks. The symbol's
names number the layers of one kind in the order in which they were made (conv0, conv1).
So layers that have the same parameters with the same shapes are matched in that order.
Where names determine no order, a layer that another depends on was made first. If that
determines none either, the file is refused: nothing would reveal that two layers had been
swapped.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cmp_to_key

from mrt.errors import BadModel
from mrt.frontend.mxnet.files import Parameters
from mrt.frontend.mxnet.symbol import Symbol
from mrt.graph.open_shapes import Shape
from mrt.graph.values import Array

Arrays = dict[str, Array | None]
Signature = tuple[tuple[str, Shape], ...]
_COUNTED = re.compile(r"(.*?[^0-9]|)([0-9]{1,18})")
MAX_PARAMETERS = 5_000  # every pair of layers of one shape is compared


@dataclass
class LayerParameters:
    """Parameters whose names differ in the last word alone, with names and shapes by that word."""

    stem: str
    names: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)

    @property
    def signature(self) -> Signature:
        """The words and shapes by which layers of two files are matched."""
        return tuple(sorted(self.shapes.items()))


def match_names(
    parameters: Parameters,
    symbol: Symbol,
    shapes: Callable[[], Mapping[str, Shape]],
) -> tuple[Arrays, list[str]]:
    """Return the arrays by the symbol's names, and a note if names were translated.

    `shapes` returns the shapes that the symbol expects; it is called only if needed.
    """
    arrays = parameters.arrays
    variables = [
        node.name for node in symbol.nodes.values() if node.operator is None
    ]
    if not arrays or set(arrays) & set(variables):
        return arrays, []
    prefix = _common_prefix(list(arrays), variables)
    if prefix is not None:
        note = f"the parameters have the names of Gluon's save_params; {prefix!r} was put in front of each"
        return {prefix + name: array for name, array in arrays.items()}, [note]
    if not any("." in name for name in arrays):
        return arrays, []
    try:
        if len(variables) > MAX_PARAMETERS:
            raise _DoubtError(
                f"it has {len(variables)} variables, and at most {MAX_PARAMETERS} are compared"
            )
        names = _matched(arrays, shapes(), _Order(symbol))
    except _DoubtError as doubt:
        raise BadModel(
            f"{parameters.path}: has the names of Gluon's save_parameters, and which is which in the symbol is not "
            f"certain: {doubt}. Where MXNet runs: net.load_parameters({parameters.path.name!r}), one forward pass, "
            "net.export('prefix'), and convert prefix-symbol.json"
        ) from None
    note = (
        f"{len(names)} parameters with names of Gluon's save_parameters matched by shape and order of creation; "
        "compare one answer with MXNet's"
    )
    return {names[name]: array for name, array in arrays.items()}, [note]


class _DoubtError(Exception):
    """The reason why the names cannot be matched."""


def _common_prefix(names: list[str], variables: list[str]) -> str | None:
    """Return the prefix that turns all the names into names of the symbol, if exactly one does."""
    symbol_names = set(variables)
    candidates = {
        known_name.removesuffix(names[0])
        for known_name in variables
        if known_name.endswith(names[0])
    }
    fitting = [
        prefix
        for prefix in candidates
        if prefix and all(prefix + name in symbol_names for name in names)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _matched(
    arrays: Arrays, shapes: Mapping[str, Shape], order: _Order
) -> dict[str, str]:
    """Return the symbol's name for each name in the file."""
    in_file = _layers_of_file(arrays)
    words = {word for layer in in_file for word in layer.names}
    in_symbol = _layers_of_symbol(shapes, words)
    groups: dict[
        Signature, tuple[list[LayerParameters], list[LayerParameters]]
    ] = defaultdict(lambda: ([], []))
    for side, layers in enumerate((in_file, in_symbol)):
        for layer in layers:
            groups[layer.signature][side].append(layer)
    pairs: dict[str, LayerParameters] = {}
    for signature, (file_layers, symbol_layers) in groups.items():
        if len(file_layers) != len(symbol_layers):
            example = (*file_layers, *symbol_layers)[0].stem
            raise _DoubtError(
                f"the file has {len(file_layers)} layers with {_show(signature)}, "
                f"the symbol {len(symbol_layers)} ({example})"
            )
        for layer, match in zip(
            file_layers, order.sorted(symbol_layers), strict=True
        ):
            pairs[layer.stem] = match
    order.require_rising([pairs[layer.stem] for layer in in_file])
    names: dict[str, str] = {}
    for layer in in_file:
        for word, name in layer.names.items():
            names[name] = pairs[layer.stem].names[word]
    return names


def _show(signature: Signature) -> str:
    return ", ".join(f"{word} {shape}" for word, shape in signature)


def _layers_of_file(arrays: Arrays) -> list[LayerParameters]:
    layers: dict[str, LayerParameters] = {}
    for name, array in arrays.items():
        if array is None:
            raise _DoubtError(f"{name!r} holds no array")
        stem, _, word = name.rpartition(".")
        layer = layers.setdefault(stem, LayerParameters(stem))
        layer.names[word], layer.shapes[word] = name, array.shape
    return list(layers.values())


def _layers_of_symbol(
    shapes: Mapping[str, Shape], words: set[str]
) -> list[LayerParameters]:
    layers: dict[str, LayerParameters] = {}
    for name, shape in shapes.items():
        fitting = [word for word in words if name.endswith("_" + word)]
        if not fitting:
            raise _DoubtError(
                f"the symbol's {name!r} ends like none of the file's names"
            )
        word = max(fitting, key=len)
        stem = name.removesuffix("_" + word)
        layer = layers.setdefault(stem, LayerParameters(stem))
        layer.names[word], layer.shapes[word] = name, shape
    return list(layers.values())


class _Order:
    """The order in which layers of the symbol were made, where it can be determined."""

    def __init__(self, symbol: Symbol) -> None:
        # For each parameter, a bit for every parameter on which its first user depends.
        self._behind: dict[str, int] = {}
        self._bits: dict[str, int] = {}
        dependencies: dict[int, int] = {}
        for index in symbol.order:
            node = symbol.nodes[index]
            inputs = [symbol.nodes[edge.node] for edge in node.inputs]
            before = 0
            for producer in inputs:
                before |= dependencies.get(producer.id, 0)
            dependencies[index] = before
            for variable in inputs:
                if variable.operator is None:
                    self._behind.setdefault(variable.name, before)
                    bit = self._bits.setdefault(variable.name, len(self._bits))
                    dependencies[index] |= 1 << bit

    def sorted(self, layers: list[LayerParameters]) -> list[LayerParameters]:
        """Return the layers in order of creation; raise _DoubtError for a pair without an order."""
        result = sorted(layers, key=cmp_to_key(self._compare))
        for index, second in enumerate(result):
            for first in result[:index]:
                if self._compare(first, second) != -1:
                    raise _DoubtError(
                        f"{first.stem!r} and {second.stem!r} have the same shapes, and nothing tells their order"
                    )
        return result

    def require_rising(self, layers: list[LayerParameters]) -> None:
        """Raise _DoubtError when the numbers of one kind of layer do not rise in the file."""
        last: dict[str, tuple[int, str]] = {}
        for layer in layers:
            counted = _COUNTED.fullmatch(layer.stem)
            if counted is not None:
                word, number = counted[1], int(counted[2])
                if word in last and last[word][0] > number:
                    raise _DoubtError(
                        f"{layer.stem!r} comes after {last[word][1]!r} in the file"
                    )
                last[word] = number, layer.stem

    def _compare(self, first: LayerParameters, second: LayerParameters) -> int:
        """Return -1 or 1 by number or else by use; 0 where both are unknown or disagree."""
        by_number = _by_number(first.stem, second.stem)
        by_use = self._by_use(first, second)
        if by_number + by_use == 0:
            return 0
        return by_number or by_use

    def _by_use(self, first: LayerParameters, second: LayerParameters) -> int:
        return self._is_behind(first, second) - self._is_behind(second, first)

    def _is_behind(self, layer: LayerParameters, other: LayerParameters) -> int:
        mine = next(iter(layer.names.values()))
        its = next(iter(other.names.values()))
        return (
            self._behind.get(mine, 0) >> self._bits.get(its, len(self._bits))
            & 1
        )


def _by_number(first: str, second: str) -> int:
    """Return -1 or 1 if the first words that differ are one word with two numbers; else 0."""
    words = zip(first.split("_"), second.split("_"), strict=False)
    for left, right in words:
        if left != right:
            return _compare_numbers(left, right)
    return 0


def _compare_numbers(left: str, right: str) -> int:
    left_match = _COUNTED.fullmatch(left)
    right_match = _COUNTED.fullmatch(right)
    if (
        left_match is None
        or right_match is None
        or left_match[1] != right_match[1]
    ):
        return 0
    difference = int(left_match[2]) - int(right_match[2])
    if difference == 0:
        return 0
    return -1 if difference < 0 else 1
