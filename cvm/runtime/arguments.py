"""What a Python user gives to a program, checked: arrays by name, numbers of threads, tokens."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cvm.errors import BadInput, brief
from cvm.program import Input, Output


def named_arrays(
    ports: Iterable[Input | Output], arrays: Any, what: str
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of the ports by name, as far as there are any: of lists, too, and of an array alone for one port.

    Each is asked for once, others not at all. BadInput for what is no array.
    """
    names = [port.name for port in ports]
    if not isinstance(arrays, Mapping):
        if len(names) != 1:
            raise BadInput(
                f"one array for {len(names)} {what}s; give arrays by name: {', '.join(names)}"
            )
        arrays = {names[0]: arrays}
    return {
        name: _array(arrays[name], f"{what} '{name}'")
        for name in names
        if name in arrays
    }


def _array(value: Any, where: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(value)
    except Exception:  # whatever the object raises
        raise BadInput(
            f"{where}: {brief(value)} is no array; expected an array of numbers, or lists of equal lengths"
        ) from None


def at_least_1(value: Any, name: str) -> int:
    """The number; BadInput unless it is an integer of at least 1."""
    try:
        number = operator.index(value)
    except TypeError:
        raise BadInput(
            f"{name} {brief(value)}: expected an integer, at least 1"
        ) from None
    if number < 1:
        raise BadInput(f"{name} {number}: expected at least 1")
    return number


def tokens_of(prompt: Any) -> list[int]:
    """The tokens of a prompt as integers; BadInput for what is none."""
    if isinstance(prompt, str) or not isinstance(prompt, Iterable):
        raise BadInput(
            f"prompt {brief(prompt)}: expected a list of the numbers of tokens"
        )
    tokens: list[int] = []
    for place, token in enumerate(prompt):
        try:
            tokens.append(operator.index(token))
        except TypeError:
            raise BadInput(
                f"token {brief(token)} at place {place} of the prompt: expected an integer"
            ) from None
    return tokens
