"""Frames of pandas as arrays, one for each column, without importing pandas."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from mrt.errors import BadData

Arrays = dict[str, npt.NDArray[Any]]


def is_frame(data: Any) -> bool:
    """Whether the data are a DataFrame; nobody has one who has not imported pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def columns_of(frame: Any) -> Arrays:
    """Each column as an array [N,1]; BadData for two columns of one name."""
    columns: Arrays = {}
    for place, column in enumerate(frame.columns):
        if str(column) in columns:
            raise BadData(
                f"data: two columns have the name '{column}'; rename one"
            )
        columns[str(column)] = frame.iloc[:, [place]].to_numpy()
    return columns


def by_inputs(arrays: Arrays, inputs: Sequence[str]) -> Arrays:
    """The same arrays, each that suits an input of the model by that input's name."""
    return {
        _name_of_input(name, inputs): array for name, array in arrays.items()
    }


def _name_of_input(name: str, inputs: Sequence[str]) -> str:
    usual = input_name(name)
    return usual if usual in inputs and name not in inputs else name


def input_name(column: str) -> str:
    """The name of a column's input, as skl2onnx writes it: letters, digits and underscores."""
    name = re.sub(r"[^\w+]", "_", column)
    return f"_{name}" if re.match("[0-9]", name) else name
