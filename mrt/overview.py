"""What `mrt show` prints of a model: what its file holds, and what stands in the way of converting it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from cvm.runtime.listing import counted
from mrt import project
from mrt.config import Config
from mrt.errors import BadOption, MrtError
from mrt.frontend.contents import (
    Contents,
    ModelPort,
    contents_of,
    contents_of_graph,
)

_MOST_KINDS = 12  # of operators that are listed
_MOST_PORTS = 20


@dataclass(frozen=True)
class Overview:
    """A model's contents; `problems` is empty if it can be read and rewritten.

    `rewritten` counts the operators that rewriting leaves, which are quantized.
    """

    contents: Contents
    notes: tuple[str, ...]
    rewritten: Mapping[str, int]
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The facts for other programs."""
        return {
            "format": "mrt-show-1",
            **asdict(self.contents),
            "notes": list(self.notes),
            "rewritten": dict(self.rewritten),
            "problems": list(self.problems),
        }


def overview(config: Config) -> Overview:
    """Look at the model that the configuration names.

    Raise BadModel if its file is no model, BadOption if a setting cannot be used.
    """
    path = config.model.path
    if path is None:
        raise BadOption("no model is given: name its file")
    contents = contents_of(path)
    try:
        loaded = project.load(config)
        graph_contents = contents_of_graph(loaded.model, contents.written_as)
        contents = replace(graph_contents, operators=contents.operators)
        notes = tuple(loaded.notes)
        rewritten = project.rewrite_model(loaded, config)
        project.require_interface(rewritten.model)
    except BadOption:
        raise
    except MrtError as problem:
        return Overview(contents, (), {}, tuple(problem.lines))
    operators = contents_of_graph(rewritten.model, "").operators
    return Overview(contents, notes, operators, ())


def overview_lines(overview: Overview) -> list[str]:
    """The lines for people."""
    contents = overview.contents
    lines = [contents.written_as]
    lines += _listed("inputs", _shown(contents.inputs))
    lines += _listed("outputs", _shown(contents.outputs))
    if contents.parameters is not None:
        weights = contents.parameters
        counts = f"{counted(weights.numbers, 'number')} in {counted(weights.tensors, 'tensor')}, {counted(weights.size, 'byte')}"
        lines += _listed("parameters", [counts])
    lines += _listed("operators", [_operators(contents.operators)])
    if overview.problems:
        return [*lines, "", "cannot be converted as it is:", *overview.problems]
    lines += _listed("rewritten", [_operators(overview.rewritten)])
    return [*lines, "", "every operator can be converted"]


def _listed(name: str, texts: list[str]) -> list[str]:
    names = [name, *[""] * len(texts)]
    return [
        f"  {label:<11} {text}"
        for label, text in zip(names, texts, strict=False)
    ]


def _shown(ports: Sequence[ModelPort]) -> list[str]:
    more = len(ports) - _MOST_PORTS
    texts = [str(port) for port in ports[:_MOST_PORTS]]
    return [*texts, f"and {more} more"] if more > 0 else texts


def _operators(counts: Mapping[str, int]) -> str:
    texts = [f"{count:,} {name}" for name, count in counts.items()]
    more = len(texts) - _MOST_KINDS
    if more > 0:
        texts = [*texts[:_MOST_KINDS], f"and {more} kinds more"]
    return f"{sum(counts.values()):,}: {', '.join(texts)}" if texts else "none"
