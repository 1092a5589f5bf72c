"""Makes the programs that a search compares.

What is judged is refined as the program found will be in the end. Refinement takes
seconds, so the many programs that differ by one candidate are drafts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import onnx_ir as ir

from cvm.proof.validate import Proven, validate
from mrt.quantize import QuantizeOptions
from mrt.quantize import quantize as write_program
from mrt.quantize.curves.curve_memo import CurveMemo
from mrt.table.decisions import Decisions
from mrt.table.table import CalibrationTable
from mrt.tune.candidates import Candidate

Value = TypeVar("Value")
Refine = Callable[[QuantizeOptions], CalibrationTable]
"""A function from options to the calibration table with the decisions for them."""


@dataclass
class Programs:
    """The programs of one model, whose tables are refined once for each options."""

    model: ir.Model
    refine: Refine
    _memo: CurveMemo = field(default_factory=CurveMemo)
    _tables: dict[str, CalibrationTable] = field(default_factory=dict)

    def refined(self, options: QuantizeOptions) -> Proven:
        """Return the program that a conversion with these options gives."""
        return self._write(self._table(options), options)

    def draft(
        self,
        options: QuantizeOptions,
        decided_for: QuantizeOptions,
        *,
        lowered: Candidate | None = None,
        before: QuantizeOptions | None = None,
    ) -> Proven:
        """Return a program with the channels' decisions of others, and no more.

        Only `lowered` has more: a value has its channels' decisions of the program
        with the options `before`, and weights have their integers.
        """
        table = self._table(decided_for)
        decided = table.decisions
        decisions = replace(decided, key=options.key(), layers={})
        if lowered is not None and lowered.weights:
            layers = _only(decided.layers, lowered.names)
            decisions = replace(decisions, layers=layers)
        elif lowered is not None and before is not None:
            others = self._table(before).decisions
            decisions = _with_channels(decisions, others, lowered.names)
        return self._write(replace(table, decisions=decisions), options)

    def _table(self, options: QuantizeOptions) -> CalibrationTable:
        key = json.dumps(options.key(), sort_keys=True)
        if key not in self._tables:
            self._tables[key] = self.refine(options)
        return self._tables[key]

    def _write(
        self, table: CalibrationTable, options: QuantizeOptions
    ) -> Proven:
        return validate(
            write_program(self.model, table, options, memo=self._memo)
        )


def _with_channels(
    decisions: Decisions, others: Decisions, names: Collection[str]
) -> Decisions:
    scales = {**decisions.channel_scales, **_only(others.channel_scales, names)}
    centres = {**decisions.centres, **_only(others.centres, names)}
    return replace(decisions, channel_scales=scales, centres=centres)


def _only(
    values: Mapping[str, Value], names: Collection[str]
) -> dict[str, Value]:
    return {name: value for name, value in values.items() if name in names}
