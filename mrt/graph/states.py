"""The states of a model that runs step by step: outputs of one step that are inputs of the next.

A transformer's keys and values are such. An output that is one place longer than its input, as exporters write
a cache to which the step's own keys were added, gives up its first place, so that both have one shape.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from mrt.errors import BadOption
from mrt.graph.names import fresh_name
from mrt.graph.notes import set_shared_range
from mrt.graph.patch import add_constant
from mrt.graph.values import shape_of

STATES = "mrt.states"
"""Key of the model's note: the names of the outputs that are states, by input."""
SHORTENED = "mrt.shortened_states"
"""Key of the model's note: the shapes that the file gives outputs which have one place less in the program, by name."""


def states_of(model: ir.Model) -> Mapping[str, str]:
    """Return the outputs that are states, by input, as `tie_states` noted them."""
    states: Mapping[str, str] = model.meta.get(STATES, {})
    return states


def tie_states(
    model: ir.Model, given: Mapping[str, str], usual: Mapping[str, str]
) -> None:
    """Note which outputs are states of which inputs, and give both of a pair one shape.

    Raise BadOption for a given pair that cannot be one; a usual one is then left alone, as
    where its input or output is given to another.
    """
    inputs = {str(value.name): value for value in model.graph.inputs}
    outputs = {str(value.name): value for value in model.graph.outputs}
    states: dict[str, str] = {}
    shortened = dict(_shortened_states(model))
    pairs = _by_input(given, inputs)
    _check_once(pairs)
    others = {
        name: output
        for name, output in usual.items()
        if name not in pairs and output not in pairs.values()
    }
    for name, output in {**others, **pairs}.items():
        past, present = _of_pair(name, output, inputs, outputs)
        of_file = shape_of(present)
        problem = _shorten(model.graph, past, present, given=name in pairs)
        if problem and name not in pairs:
            continue
        if problem:
            raise BadOption(f"--state {name}={output}: {problem}")
        states[name] = output
        if present.name != output and of_file is not None:
            shortened[output] = of_file
    model.meta[STATES] = states
    model.meta[SHORTENED] = shortened


def notes_of_shortened_states(model: ir.Model) -> list[str]:
    """Say which outputs have another shape than in the file; nothing where all have the same."""
    shortened = _shortened_states(model)
    if not shortened:
        return []
    (name, of_file), *others = shortened.items()
    kept = next(it for it in model.graph.outputs if it.name == name)
    more = f", and {len(others)} more caches likewise" if others else ""
    return [
        f"output '{name}' has the shape in which the next step takes it in, {list(shape_of(kept) or ())}, without the oldest "
        f"place of the file's {list(of_file)}{more}"
    ]


def _shortened_states(model: ir.Model) -> Mapping[str, tuple[int, ...]]:
    shortened: Mapping[str, tuple[int, ...]] = model.meta.get(SHORTENED, {})
    return shortened


def share_ranges_of_states(model: ir.Model) -> None:
    """Note on every pair that calibration measures both as one.

    Raise BadOption where rewriting found that the two have different shapes.
    """
    outputs = {str(value.name): value for value in model.graph.outputs}
    for value in model.graph.inputs:
        present = outputs.get(states_of(model).get(str(value.name), ""))
        if present is not None:
            if shape_of(present) != shape_of(value):
                raise BadOption(
                    f"--state {value.name}={present.name}: the input has shape {value.shape}, the output {present.shape}"
                )
            set_shared_range(value, f"state:{value.name}")
            set_shared_range(present, f"state:{value.name}")


def _by_input(
    stated: Mapping[str, str], inputs: Mapping[str, ir.Value]
) -> dict[str, str]:
    """The pairs by input, also of those that name the output first."""
    pairs: dict[str, str] = {}
    for first, second in stated.items():
        swapped = first not in inputs and second in inputs
        name, output = (second, first) if swapped else (first, second)
        if pairs.setdefault(name, output) != output:
            raise BadOption(
                f"--state gives input '{name}' two outputs: '{pairs[name]}' and '{output}'; expected one"
            )
    return pairs


def _check_once(pairs: Mapping[str, str]) -> None:
    """Require that no output is the state of two inputs."""
    input_of: dict[str, str] = {}
    for name, output in pairs.items():
        if input_of.setdefault(output, name) != name:
            raise BadOption(
                f"--state {name}={output}: '{output}' is the state of input '{input_of[output]}' already; "
                "expected an output for each"
            )


def _of_pair(
    name: str,
    output: str,
    inputs: Mapping[str, ir.Value],
    outputs: Mapping[str, ir.Value],
) -> tuple[ir.Value, ir.Value]:
    for kind, value_name, values in (
        ("input", name, inputs),
        ("output", output, outputs),
    ):
        if value_name not in values:
            raise BadOption(
                f"--state {name}={output}: the model has no {kind} '{value_name}'; it has {', '.join(values)}"
            )
    return inputs[name], outputs[output]


def _shorten(
    graph: ir.Graph, past: ir.Value, present: ir.Value, *, given: bool
) -> str | None:
    """Take the first place off an output that is one longer than its input; a reason if they cannot be a pair.

    A `given` pair may have an output whose file does not state all of its shape.
    """
    if past.dtype != ir.DataType.FLOAT or present.dtype != past.dtype:
        return "a state is of float numbers, on both sides"
    before, after = shape_of(past), shape_of(present)
    if (
        given
        and after is None
        and before is not None
        and _may_be(present, before)
    ):
        return None
    if before is None or after is None or len(before) != len(after):
        return f"the input has shape {past.shape}, the output {present.shape}"
    longer = [axis for axis, size in enumerate(before) if after[axis] != size]
    if not longer:
        return None
    if len(longer) > 1 or after[longer[0]] != before[longer[0]] + 1:
        return (
            f"the input has shape {list(before)}, the output {list(after)}: "
            "expected the same, or one place more on one axis"
        )
    _drop_first(graph, present, longer[0], before)
    return None


def _may_be(value: ir.Value, shape: tuple[int, ...]) -> bool:
    """Whether a value has this shape as far as its file states one; rewriting finds the rest."""
    if value.shape is None:
        return True
    if len(value.shape) != len(shape):
        return False
    pairs = zip(value.shape, shape, strict=True)
    return all(
        not isinstance(stated, int) or stated == size for stated, size in pairs
    )


def _drop_first(
    graph: ir.Graph, value: ir.Value, axis: int, shape: tuple[int, ...]
) -> None:
    """Make `value` without its first place on an axis the output of its name."""
    name = str(value.name)
    operands = [
        add_constant(graph, np.array([number], np.int64), f"{name}.{role}")
        for role, number in (
            ("starts", 1),
            ("ends", shape[axis] + 1),
            ("axes", axis),
        )
    ]
    node = ir.Node(
        "",
        "Slice",
        [value, *operands],
        name=fresh_name(graph, f"{name}.without_first"),
    )
    value.name = fresh_name(graph, f"{name}.with_first")
    kept = node.outputs[0]
    kept.name, kept.type, kept.shape = name, value.type, ir.Shape(shape)
    place = [output is value for output in graph.outputs].index(True)
    graph.append(node)
    graph.outputs[place] = kept
