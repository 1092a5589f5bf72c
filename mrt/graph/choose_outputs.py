"""Choose other outputs of a rewritten graph: the values that the user names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from mrt.errors import BadOption

CLOSE = 5  # names in an error message


def choose_outputs(
    model: ir.Model, wanted: Sequence[str], also_known: Iterable[str] = ()
) -> None:
    """Make these the outputs, and drop nodes and inputs that only the old ones need.

    Raise BadOption for an unknown name, with names that are close to it.
    """
    values = {
        str(value.name): value for node in model.graph for value in node.outputs
    }
    require_known(
        [name for name in wanted if name not in values], [*also_known, *values]
    )
    end_in(model, [values[name] for name in wanted])
    unused = [value for value in model.graph.inputs if not value.uses()]
    for value in unused:
        model.graph.inputs.remove(value)


def end_in(model: ir.Model, values: Sequence[ir.Value]) -> None:
    """Make these values the outputs, and drop nodes that only the old ones need; the inputs stay."""
    model.graph.outputs.clear()
    model.graph.outputs.extend(values)
    RemoveUnusedNodesPass()(model)


def require_known(unknown: Sequence[str], names: Iterable[str]) -> None:
    """Raise BadOption for names that nothing has, with names that are close to them."""
    if not unknown:
        return
    known_names = list(dict.fromkeys(names))
    lines = [
        f"{name!r} is no node or value of the model; {_like(name, known_names)}"
        for name in unknown
    ]
    raise BadOption(
        "--outputs: "
        + "; ".join(lines)
        + ". `mrt rewrite MODEL -o r.onnx` writes a file with all names"
    )


def _like(name: str, known_names: list[str]) -> str:
    close = difflib.get_close_matches(name, known_names, CLOSE, cutoff=0.6)
    containing = (
        [
            candidate
            for candidate in known_names
            if name.lower() in candidate.lower()
        ]
        if name
        else []
    )
    shown = list(dict.fromkeys([*close, *containing]))[:CLOSE]
    if shown:
        return f"close are {', '.join(shown)}"
    return f"its last are {', '.join(known_names[-CLOSE:])}"
