"""The options of `--refine` and `[refinement]`: which stages of refinement run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields

from mrt.errors import BadOption
from mrt.refine.stages import STAGES as ALL_STAGES
from mrt.refine.stages import Needs

FORMER_NAMES = {
    "twins": "duplicates"
}  # retired names of stages, still read in files and commands


@dataclass(frozen=True)
class RefineOptions:
    """One field for each stage (`mrt.refine.stages`), with the stage's name.

    - `duplicates`: a second copy of each channel for which 8 bits are too coarse.
    - `scales`: one scale for each channel, where the readers allow it.
    - `centres`: with `scales`, centres from which signed channels are counted.
    - `fit`: weights that fit the integers that a layer meets.
    - `weights`: weights rounded to second order.
    - `biases`: the mean and the gain of each output channel as in float, for the outputs that
      the layers before compute as integers.
    """

    duplicates: bool = True
    scales: bool = True
    centres: bool = True
    fit: bool = True
    weights: bool = True
    biases: bool = True

    @classmethod
    def of(cls, stages: Collection[str]) -> RefineOptions:
        """Choose these stages and no others; raise BadOption for an unknown name."""
        named = {FORMER_NAMES.get(stage, stage) for stage in stages}
        for stage in sorted(named):
            if stage not in STAGES:
                raise BadOption(
                    f"'{stage}' is no stage; there are {', '.join(STAGES)}, all and none"
                )
        return cls(**{stage: stage in named for stage in STAGES})

    def runs(self, name: str) -> bool:
        """Whether the stage is chosen, and with it the one that it requires."""
        (stage,) = (stage for stage in ALL_STAGES if stage.name == name)
        chosen: bool = getattr(self, name)
        return chosen and (stage.requires is None or self.runs(stage.requires))

    def need(self, needs: Needs) -> bool:
        """Whether a stage that runs has these needs."""
        return any(
            stage.needs is needs and self.runs(stage.name)
            for stage in ALL_STAGES
        )

    @property
    def any(self) -> bool:
        """Whether a stage has anything to decide once ranges are known."""
        return self.need(Needs.CHANNELS) or self.need(Needs.LAYERS)


STAGES = tuple(field.name for field in fields(RefineOptions))
