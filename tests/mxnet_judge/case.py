"""A case: a symbol as MXNet writes it and the numbers it is run on; and its form in a file (JSON, a line per case)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """`id` says how it was drawn: maker's operator and number. `labels` are inputs that matter in training only."""

    id: str
    symbol: dict[str, Any]
    inputs: Arrays
    parameters: Arrays
    labels: Arrays

    @property
    def operators(self) -> list[str]:
        return [
            row["op"] for row in self.symbol["nodes"] if row["op"] != "null"
        ]


@dataclass(frozen=True)
class Answer:
    """What one side made of a case: its outputs, or the words with which it refused."""

    outputs: tuple[np.ndarray, ...] = ()
    refusal: str | None = None


def array_to_json(array: np.ndarray) -> dict[str, Any]:
    """Numbers as the shortest decimals that read back the same."""
    numbers = array.reshape(-1)
    data = (
        [float(str(number)) for number in numbers]
        if array.dtype == np.float32
        else numbers.tolist()
    )
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def array_from_json(item: Mapping[str, Any]) -> np.ndarray:
    return np.array(item["data"], item["dtype"]).reshape(item["shape"])


def case_to_json(case: Case) -> dict[str, Any]:
    groups = {
        name: getattr(case, name) for name in ("inputs", "parameters", "labels")
    }
    arrays = {
        group: {name: array_to_json(array) for name, array in found.items()}
        for group, found in groups.items()
    }
    return {"id": case.id, "symbol": case.symbol, **arrays}


def case_from_json(item: Mapping[str, Any]) -> Case:
    arrays = [
        {name: array_from_json(array) for name, array in item[group].items()}
        for group in ("inputs", "parameters", "labels")
    ]
    return Case(item["id"], item["symbol"], *arrays)


def answer_to_json(answer: Answer) -> dict[str, Any]:
    if answer.refusal is not None:
        return {"refusal": answer.refusal}
    return {"outputs": [array_to_json(array) for array in answer.outputs]}


def answer_from_json(item: Mapping[str, Any]) -> Answer:
    if "refusal" in item:
        return Answer(refusal=item["refusal"])
    return Answer(tuple(array_from_json(array) for array in item["outputs"]))


def write_lines(path: Path, items: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(item) + "\n" for item in items))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Whole lines only: a process that was killed may have left half of one."""
    with path.open() as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)
