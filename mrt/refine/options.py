"""The options of `--refine` and `[refinement]`: which stages of refinement run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mrt.errors import BadOption
from mrt.option_values import ProductShare
from mrt.options import FLAGS, option, options_of
from mrt.refine.stages import STAGES as ALL_STAGES
from mrt.refine.stages import Needs


@dataclass(frozen=True)
class RefineOptions:
    """One field for each stage (`mrt.refine.stages`), with the stage's name, and what `duplicates` may cost."""

    duplicates: bool = option(
        True,
        help="A second copy of each channel for which 8 bits are too coarse.",
        allowed=FLAGS,
        keys=("duplicates", "twins"),
    )
    scales: bool = option(
        True,
        help="One scale for each channel, where the readers allow it.",
        allowed=FLAGS,
    )
    centres: bool = option(
        True,
        help="With scales: the number from which a signed channel is counted.",
        allowed=FLAGS,
    )
    fit: bool = option(
        True,
        help="Weights that fit the integers that a layer meets.",
        allowed=FLAGS,
    )
    weights: bool = option(
        True, help="Weights rounded to second order.", allowed=FLAGS
    )
    biases: bool = option(
        True,
        help="Mean and gain of each output channel as in float, for outputs that the layers before compute as integers.",
        allowed=FLAGS,
    )
    extra_products: ProductShare | None = option(
        None,
        help="Copies of channels may add up to X times the model's products (0.3: 30 % more), "
        "for accuracy with the same bits; none that takes off little noise (default: few copies that are cheap, 0.15 at most).",
    )

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
    def of_channels(self) -> RefineOptions:
        """The same without what changes the model or decides layers."""
        chosen = (
            stage.name for stage in ALL_STAGES if stage.needs is Needs.CHANNELS
        )
        return RefineOptions.of([name for name in chosen if self.runs(name)])

    @property
    def any(self) -> bool:
        """Whether a stage has anything to decide once ranges are known."""
        return self.need(Needs.CHANNELS) or self.need(Needs.LAYERS)


STAGES = tuple(
    declared.name
    for declared in options_of(RefineOptions)
    if declared.allowed == FLAGS
)
FORMER_NAMES = {  # of stages, still read in files and commands
    former: declared.name
    for declared in options_of(RefineOptions)
    for former in declared.keys[1:]
}
