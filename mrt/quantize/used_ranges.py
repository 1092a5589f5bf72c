"""The measured ranges of a table as one lowering reads them: it notes of which values, since a probe gathers those."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mrt.errors import MrtError
from mrt.table.table import MeasuredRange


class UsedRanges:
    """The ranges by value, and the names of those that were read.

    Ranges that the model's file gives, those of `given`, are not counted as measured.
    Where it gives any, nor are those that a value may do without: such a file needs no sample.
    """

    def __init__(
        self, ranges: Mapping[str, MeasuredRange], given: Collection[str] = ()
    ) -> None:
        self._ranges, self._given = ranges, given
        self.names: set[str] = set()

    def of(self, name: str) -> MeasuredRange:
        """Return the range of a value that needs one."""
        if name not in self._ranges:
            raise MrtError(
                f"the calibration table has no range for '{name}': "
                "calibrate this model again"
            )
        if name not in self._given:
            self.names.add(name)
        return self._ranges[name]

    def get(self, name: str) -> MeasuredRange | None:
        """Return the range of a value that may do without; None where none was measured."""
        if name in self._ranges and not self._given:
            self.names.add(name)
        return self._ranges.get(name)
