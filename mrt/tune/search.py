"""Raises the candidates with the most gain for their price until the target is met.

It then lowers those that turn out not to be needed. Every program that is compared with
the target is refined. The search chooses only options: the program is the one that these
options give, with or without a search.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from cvm.proof.cost import Work, cost
from cvm.proof.validate import Proven
from mrt.errors import TargetMissed
from mrt.progress import Progress
from mrt.quantize import QuantizeOptions
from mrt.tune.candidates import Candidate, find_candidates, raised
from mrt.tune.evaluator import Evaluator, Score
from mrt.tune.order import in_order
from mrt.tune.price import price
from mrt.tune.programs import Programs
from mrt.tune.sensitivity import Measured, measure, size
from mrt.tune.target import TuningTarget, describe

MOST_LOWERINGS = 16  # tried, those with the least noise for their price first


@dataclass(frozen=True)
class Upgrade:
    """One candidate that was raised, with its cost and its share of the SNR gained."""

    candidate: Candidate
    gain_db: float
    work: Work
    price: int


@dataclass(frozen=True)
class Price:
    """The cost of a program; `engine` is the estimate of its time."""

    work: Work
    constant_bytes: int
    engine: int

    @classmethod
    def of(cls, program: Proven) -> Price:
        """Compute the cost of one sample, and the size of the constants."""
        return cls(cost(program).work, size(program.program), price(program))


@dataclass(frozen=True)
class TuningResult:
    """The options found, and the upgrades that lead to them."""

    target: TuningTarget
    samples: int
    options: QuantizeOptions
    upgrades: tuple[Upgrade, ...]
    before: Score
    after: Score
    price_before: Price
    price_after: Price


def tune(
    model: ir.Model,
    programs: Programs,
    evaluator: Evaluator,
    options: QuantizeOptions,
    target: TuningTarget,
    progress: Progress,
) -> TuningResult:
    """Return the cheapest options found that meet the target.

    Raise TargetMissed, with the best score reached, if none do.
    """
    make = programs.refined
    start = make(options)
    before = after = evaluator.score(start)
    price = Price.of(start)
    upgrades: list[Upgrade] = []
    while not target.met(after):
        candidates = find_candidates(model, make(options), options)
        if not candidates:
            raise TargetMissed(
                _missed(target, before, after, len(evaluator.samples))
            )
        everything = raised(options, candidates)
        best = evaluator.score(make(everything))
        is_enough = target.met(best)
        if not is_enough and not find_candidates(
            model, make(everything), everything
        ):
            raise TargetMissed(
                _missed(target, before, best, len(evaluator.samples))
            )
        chosen = measure(programs, evaluator, options, candidates, progress)
        if is_enough:
            trial = Trial(programs, evaluator, options, target, progress)
            chosen = trial.fewest(in_order(chosen))
            options = raised(
                options, [measured.candidate for measured in chosen]
            )
        else:  # 8 bits everywhere are not enough
            options = everything
        reached, after = after, evaluator.score(make(options))
        if is_enough and not target.met(after):
            # Candidates without effect on a few samples had one on all.
            options, after = everything, best
        upgrades += gains(chosen, reached, after)
    return TuningResult(
        target=target,
        samples=len(evaluator.samples),
        options=options,
        upgrades=tuple(upgrades),
        before=before,
        after=after,
        price_before=price,
        price_after=Price.of(make(options)),
    )


@dataclass
class Trial:
    """Programs with some of the candidates raised, each compared with the target once.

    What is expected of other samples varies by chance from program to program, and a
    search would stop at a lucky one. The SNR varies far less: a program that meets the
    target with a lower one than that of a program that missed it does not count. An output
    that is 0 in float makes every SNR minus infinite; these do not decide.
    """

    programs: Programs
    evaluator: Evaluator
    options: QuantizeOptions
    target: TuningTarget
    progress: Progress
    done: int = 0
    missed_db: float = -math.inf

    def meets(self, chosen: Sequence[Measured]) -> bool:
        """Whether the target is met with these candidates raised."""
        self.done += 1
        self.progress(
            "raising layers", self.done, max(self.done, MOST_LOWERINGS)
        )
        program = self.programs.refined(
            raised(self.options, [measured.candidate for measured in chosen])
        )
        score = self.evaluator.score(program)
        if not self.target.met(score):
            self.missed_db = max(self.missed_db, score.worst_snr_db)
            return False
        is_compared = math.isfinite(self.missed_db)
        return not is_compared or score.worst_snr_db > self.missed_db

    def fewest(self, ordered: Sequence[Measured]) -> list[Measured]:
        """Return the shortest prefix that meets the target, less the candidates not needed."""
        fails, meets = 0, len(ordered)
        while meets - fails > 1:
            middle = (fails + meets) // 2
            if self.meets(ordered[:middle]):
                meets = middle
            else:
                fails = middle
        return self._without_the_needless(list(ordered[:meets]))

    def _without_the_needless(self, chosen: list[Measured]) -> list[Measured]:
        """Lower candidates again, as long as the target stays met.

        A value goes with the weights that multiply it, which would cost more without.
        """
        raised = {measured.candidate for measured in chosen}
        units = [
            [
                other
                for other in chosen
                if other is measured or other.reads == measured.candidate
            ]
            for measured in chosen
            if measured.price_beside(raised) > 0
        ]
        units.sort(key=lambda unit: _noise_for_price(unit, raised))
        for unit in units[:MOST_LOWERINGS]:
            rest = [measured for measured in chosen if measured not in unit]
            if self.meets(rest):
                chosen = rest
        return chosen


def _noise_for_price(
    unit: Sequence[Measured], raised: Collection[Candidate]
) -> float:
    noise = math.fsum(measured.noise for measured in unit)
    return noise / max(
        sum(measured.price_beside(raised) for measured in unit), 1
    )


def gains(
    chosen: Sequence[Measured], before: Score, after: Score
) -> list[Upgrade]:
    """Return the upgrades, with the gain in the worst output's SNR divided among them.

    Each has the share of the gain that it has in the noise that all of them remove.
    """
    total = after.worst_snr_db - before.worst_snr_db
    noise = math.fsum(measured.noise for measured in chosen)
    shares = [
        measured.noise / noise * total if math.isfinite(total) else 0.0
        for measured in chosen
    ]
    return [
        Upgrade(measured.candidate, share, measured.work, measured.price)
        for measured, share in zip(chosen, shares, strict=True)
    ]


def _missed(
    target: TuningTarget, before: Score, best: Score, samples: int
) -> str:
    return (
        f"{target} cannot be met: with everything as fine as it gets, {describe(best)} on {samples} held-back samples"
        f" (at the start {describe(before)}); nothing is written"
    )
