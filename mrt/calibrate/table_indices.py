"""Explains why a float model cannot be run on a sample: an input's index is beyond the table in which it is looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from mrt.calibrate.samples import Samples
from mrt.errors import BadData, BadModel

Array = npt.NDArray[Any]
Tables = Mapping[str, tuple[int, int]]
"""The least and the last index of the table in which each input of indices is looked up."""


class OutsideTable(BadModel):
    """An index in an input of the float model that its table lacks; `tables` are those of all inputs."""

    tables: Tables


def outside_table(
    feeds: Mapping[str, Array], tables: Tables
) -> OutsideTable | None:
    """Return what is wrong with the inputs of a run that failed, if it is an index."""
    message = _outside(feeds, tables)
    if message is None:
        return None
    problem = OutsideTable(f"the float model cannot be run: {message}")
    problem.tables = tables
    return problem


def _outside(feeds: Mapping[str, Array], tables: Tables) -> str | None:
    for name, (least, last) in tables.items():
        values = feeds[name]
        outside = values[(values < least) | (values > last)]
        if outside.size:
            return (
                f"input '{name}' holds {_written(outside[0])}, which is looked up in a table of {last + 1} rows: "
                f"expected {least}..{last}. "
                "Make the samples by the tokenizer, or the numbering, of this model"
            )
    return None


def _written(number: np.generic) -> str:
    value = number.item()
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value)


@contextmanager
def naming_the_sample(samples: Samples) -> Iterator[None]:
    """Name the first sample with such an index, where a run over samples fails for one."""
    try:
        yield
    except OutsideTable as problem:
        for index, sample in enumerate(samples):
            message = _outside(sample, problem.tables)
            if message is not None:
                where = f"{samples.source}, {samples.name_of(index)}"
                raise BadData(f"{where}: {message}") from None
        raise
