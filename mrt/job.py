"""One conversion under way: its settings, and the results of its stages so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from cvm.cluster import Cluster
from cvm.program import Program
from cvm.proof.validate import Proven
from mrt.calibrate.lone_maxima import LoneMaxima
from mrt.config import Config
from mrt.doubts import Remarks
from mrt.duplicate.add_duplicates import Duplicates
from mrt.frontend import LoadedModel
from mrt.pictures import table_key
from mrt.progress import Progress
from mrt.quality import Quality, RewritingCheck
from mrt.quantize import QuantizeOptions
from mrt.quantize.source_map import SourceMap
from mrt.refine import FloatStatistics, RefineOptions
from mrt.report import FloatGraph
from mrt.rewrite.file_grids import has_file_grids
from mrt.table.table import CalibrationTable
from mrt.tune import TuningResult, TuningTarget


@dataclass
class ConversionJob:
    """The settings of a conversion, and what its stages have made; a later stage fills a later field."""

    config: Config
    progress: Progress
    given_table: CalibrationTable | None = None
    target: TuningTarget | None = None
    rewriting: RewritingCheck = field(default_factory=RewritingCheck)

    written: QuantizeOptions = field(init=False)  # before any is applied
    loaded: LoadedModel | None = None
    before: FloatGraph | None = None  # the model as it was read
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    duplicates: Duplicates | None = None
    table: CalibrationTable | None = None
    statistics: FloatStatistics | None = None
    lone_maxima: LoneMaxima = field(default_factory=LoneMaxima)
    tuned: TuningResult | None = None
    source_map: SourceMap | None = None
    program: Program | None = None
    proven: Proven | None = None
    unfolded: int | None = None  # instructions before folding
    quality: Quality = field(default_factory=Quality)
    remarks: Remarks = field(default_factory=Remarks)
    cluster: Cluster | None = None

    def __post_init__(self) -> None:
        self.written = self.config.quantization

    @property
    def model(self) -> ir.Model:
        """The float graph in its present form."""
        assert self.loaded is not None
        return self.loaded.model

    @property
    def measured(self) -> CalibrationTable:
        """The calibration table, once it exists."""
        assert self.table is not None
        return self.table

    @property
    def synthetic(self) -> bool:
        """Whether the ranges are measured on noise."""
        return (
            self.given_table is None
            and self.config.calibration_data.path is None
        )

    @property
    def stages(self) -> RefineOptions:
        """The refining stages to run.

        There are none if a table is given, which has been refined, if the samples are
        noise, or if the model's file decides scales and integers.
        """
        if self.given_table is not None or self.synthetic:
            return RefineOptions.of(())
        if has_file_grids(self.model):
            return RefineOptions.of(())
        return self.config.refinement

    @property
    def table_key(self) -> str:
        """The digest that binds a calibration table to the model and its preprocessing."""
        assert self.loaded is not None
        return table_key(self.loaded.sha256, self.model, self.config)
