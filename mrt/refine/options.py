"""Which of the stages that look at samples again are wanted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mrt.errors import BadOption

STAGES = ("duplicates", "scales", "centres", "fit", "weights", "biases")
FORMER_NAMES = {"twins": "duplicates"}  # of stages, still read in files and commands


@dataclass(frozen=True)
class RefineOptions:
    """`duplicates`: a second copy of each channel for which 8 bits are too coarse (`mrt.duplicate`).

    `scales`: one for each channel, where readers allow it; `centres`: with these, from where signed channels are counted.
    `fit`: weights as fit the integers that a layer meets. `weights`: rounded to second order. `biases`: the mean and the gain of
    each output channel as in float, for what the layers before really give.
    """

    duplicates: bool = True
    scales: bool = True
    centres: bool = True
    fit: bool = True
    weights: bool = True
    biases: bool = True

    @classmethod
    def of(cls, stages: Collection[str]) -> RefineOptions:
        """These stages and no others; BadOption for a name that is none."""
        named = {FORMER_NAMES.get(stage, stage) for stage in stages}
        for stage in sorted(named):
            if stage not in STAGES:
                raise BadOption(
                    f"'{stage}' is no stage; there are {', '.join(STAGES)}, all and none"
                )
        return cls(**{stage: stage in named for stage in STAGES})

    @property
    def layers(self) -> bool:
        """Whether layers are gone through one after another."""
        return self.fit or self.weights or self.biases

    @property
    def any(self) -> bool:
        """Whether there is anything to do once ranges are known."""
        return self.scales or self.layers
