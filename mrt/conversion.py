"""The result of a conversion: the proven program, its origin, its summary and its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from cvm.file import format as cvm_format
from cvm.proof.cost import cost
from cvm.proof.slack import bits, slack, tightest
from cvm.proof.validate import Proven, check
from mrt.advice import Advice, flags_of
from mrt.config import Config
from mrt.doubts import Remarks, noise_warning
from mrt.frontend import LoadedModel
from mrt.quality import Quality
from mrt.quantize.roundings import others, roundings
from mrt.report import FloatGraph, Report, float_graph
from mrt.rewrite.file_grids import has_file_grids
from mrt.table.table import CalibrationTable
from mrt.tune import TuningResult


@dataclass(frozen=True)
class Conversion:
    """A proven program, and the model, table and settings from which it was made."""

    name: str  # of the model's file
    proven: Proven
    model: LoadedModel  # rewritten
    table: CalibrationTable
    synthetic: bool  # calibrated on noise, on which the program depends
    before: FloatGraph  # the model as it was read
    # The float value for which each instruction was written.
    source_map: Mapping[int, str]
    config: Config  # with the precisions that a search found
    # The values whose measured ranges the program depends on.
    measured: frozenset[str] = frozenset()
    unfolded: int | None = None  # instructions before folding
    rounded: Sequence[str] = ()  # layers with weights rounded here
    tuned: TuningResult | None = None
    quality: Quality = field(default_factory=Quality)
    # Options of `mrt.convert` that nobody gave, where 8 bits were too few.
    chosen: Mapping[str, Any] = field(default_factory=dict)
    remarks: Remarks = field(default_factory=Remarks)

    def with_advice(self, advice: Advice) -> Conversion:
        """Return the conversion with other advice; the warnings of the former one are replaced, the others stay."""
        quality = replace(self.quality, advice=advice)
        outdated = self.quality.warnings()
        warnings = [
            text for text in self.remarks.warnings if text not in outdated
        ]
        remarks = replace(
            self.remarks, warnings=[*warnings, *quality.warnings()]
        )
        return replace(self, quality=quality, remarks=remarks)

    @property
    def warnings(self) -> list[str]:
        """What makes the program doubtful, for whoever asked for it, by a command or in Python."""
        of_all = not has_file_grids(self.model.model)
        noise = noise_warning(self.measured, of_all=of_all)
        return [*self.remarks.warnings, *([noise] if self.synthetic else [])]

    @cached_property
    def data(self) -> bytes:
        """The program's file."""
        return cvm_format.encode(self.proven.program)

    def write(self, file: IO[bytes]) -> None:
        """Write the program's file."""
        file.write(self.data)

    def summary(self) -> dict[str, str]:
        """Return the lines that `mrt convert` prints, by title, in order."""
        noise = "synthetic " if self.synthetic else ""
        many = "" if self.table.samples == 1 else "s"
        samples = f"{self.table.samples} {noise}sample{many}"
        if held_back := self.config.calibration_data.held_back:
            samples += f", not on {held_back} held back"
        if has_file_grids(self.model.model) and not self.measured:
            samples = "nothing: the model's file gives every scale"
        lines = {
            "program id": cvm_format.program_id(self.data),
            "size": f"{len(self.data):,} bytes",
            "instructions": self._instructions(),
            "proof": f"every value fits; tightest slack {bits(self._slack)} bits",
            "cost": f"{cost(self.proven).total:,}",
            "calibrated on": samples,
        }
        if self._duplicates:
            lines["duplicates"] = (
                f"{self._duplicates:,} of the channels (see --refine)"
            )
        if self.chosen:
            lines["chosen"] = flags_of(self.chosen)
        lines["against float"] = self.quality.sentence
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the same facts for other programs to read."""
        return {
            "program": cvm_format.program_id(self.data),
            "metadata": cvm_format.metadata_digest(self.data),
            "bytes": len(self.data),
            "instructions": len(self.proven.program.instructions),
            "unfolded": self.unfolded,
            "slack_hundredths": self._slack,
            "cost": cost(self.proven).total,
            "samples": self.table.samples,
            "synthetic": self.synthetic,
            "duplicates": self._duplicates,
            "chosen": dict(self.chosen),
            "quality": self.quality.to_json(),
            "notes": [*self.model.notes, *self.remarks.notes],
            "warnings": list(self.remarks.warnings),
        }

    @property
    def _slack(self) -> int | None:
        """The least room that the proof leaves, in hundredths of a bit; None where all is 0."""
        number = tightest(self.proven)
        if number is None:
            return None
        return slack("i32", self.proven.intervals[number])

    @property
    def _duplicates(self) -> int:
        return sum(map(len, self.table.duplicates.values()))

    def _instructions(self) -> str:
        """How many there are, and how many there were before folding."""
        count = f"{len(self.proven.program.instructions):,}"
        if self.unfolded is None:
            return count
        return f"{count}, folded from {self.unfolded:,}"

    def explanation(self) -> list[str]:
        """Return where onnxruntime rounds another way than this program, of a quantized model."""
        if not has_file_grids(self.model.model):
            return ["the model is not quantized: nothing of its file is kept"]
        lines: list[str] = []
        for reason, places in roundings(self.model.model).items():
            lines += [f"{reason}:", f"  {', '.join(places)}"]
        return [*lines, *others(self.rounded, self.measured)]

    def report(self, path: Path | None = None) -> Report:
        """The outcome of every float operator; the file at `path`, if any, is checked to hold integers only."""
        written = path is not None and path.is_file()
        form = check(cvm_format.read(path)) if path and written else self.proven
        return Report.of(
            form,
            self.before,
            float_graph(self.model.model),
            self.source_map,
            quality=self.quality.to_json(),
            model=self.name,
            origin=self.model.origin,
            program_id=cvm_format.program_id(form.program),
        )
