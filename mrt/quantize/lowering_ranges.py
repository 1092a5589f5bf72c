"""The ranges that formats are chosen from: those of the calibration table, changed where samples do not show what counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from mrt.quantize.cosine_ranges import ranges_of_cosines
from mrt.quantize.file_formats import ranges_of_formats
from mrt.quantize.function_masks import ranges_without_function_masks
from mrt.quantize.picture_inputs import ranges_of_bytes
from mrt.quantize.pooling_masks import ranges_without_fills
from mrt.quantize.score_ranges import ranges_of_scores
from mrt.quantize.softmax_masks import ranges_without_masks
from mrt.quantize.tensor import Format
from mrt.table.table import CalibrationTable, Ranges


@dataclass(frozen=True)
class LoweringRanges:
    """Ranges by name of the value.

    `without_masks` and `without_fills` are those of `ranges` that leave out numbers which
    exclude an element: from a Softmax or a function, and from pooling.
    """

    ranges: Ranges
    without_masks: Ranges
    without_fills: Ranges

    @property
    def masked(self) -> frozenset[str]:
        """The names of the values whose masks or fills saturate."""
        return frozenset({**self.without_masks, **self.without_fills})


def ranges_for_lowering(
    graph: ir.Graph,
    table: CalibrationTable,
    formats: Mapping[str, Format],
    states: Collection[str],
) -> LoweringRanges:
    """Return the ranges of a canonical graph; where two changes are of one value, the later one holds.

    `formats` are those that the model's file gives: they hold whatever was measured, and where
    there are any, outputs are as far-reaching as the file says. `states` are outputs that are
    inputs of the next step.
    """
    nodes = list(graph)
    of_formats = ranges_of_formats(formats)
    measured = replace(table, ranges={**table.ranges, **of_formats})
    without_masks = {
        **ranges_without_masks(nodes, measured),
        **ranges_without_function_masks(nodes, measured),
    }
    without_fills = ranges_without_fills(nodes, measured)
    ranges = dict(table.ranges)
    if not formats:
        ranges |= ranges_of_scores(graph, states, table.ranges)
        ranges |= ranges_of_cosines(graph, states, table.ranges)
    ranges |= without_masks
    ranges |= without_fills
    ranges |= ranges_of_bytes(graph, nodes)
    ranges |= of_formats
    return LoweringRanges(ranges, without_masks, without_fills)
