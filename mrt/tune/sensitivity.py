"""Measures the noise that each candidate adds to the outputs, and the price of removing it.

The noises are measured on programs, one at a time. The base has all candidates raised.
In it one value, or one layer's weights, is lowered, and the outputs of the two programs
are compared with each other, not with float: so the difference is the noise of this
candidate alone. In a program of 8-bit values each change would re-randomise every later
rounding, which hides the effect of most candidates. Noises measured this way very nearly
add up. The price is that of the one upgrade in the program without any; of weights also in
the program where the values alone are raised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from cvm.program import Program
from cvm.proof.cost import Work, cost
from cvm.proof.validate import Proven
from mrt.progress import Progress
from mrt.quantize import QuantizeOptions
from mrt.tune.candidates import Candidate, raised, values_read
from mrt.tune.evaluator import Evaluator, Pending
from mrt.tune.price import price
from mrt.tune.programs import Programs

SAMPLES = 12  # the number of held-back samples that are used
AHEAD = 2  # programs whose runs may wait while the next one is written


@dataclass(frozen=True)
class Measured:
    """A measured candidate.

    `noise` is removed from the outputs if the candidate is raised; `work` and `price`
    are what the raised program takes more. `reads` is the candidate of the value that
    weights multiply, if that can be raised, and `beside` their price where it is.
    """

    candidate: Candidate
    noise: float
    work: Work
    price: int
    reads: Candidate | None = None
    beside: int = 0

    def price_beside(self, raised: Collection[Candidate]) -> int:
        """Return the price where these candidates are raised."""
        return self.beside if self.reads in raised else self.price


def measure(
    programs: Programs,
    evaluator: Evaluator,
    options: QuantizeOptions,
    candidates: Sequence[Candidate],
    progress: Progress,
) -> list[Measured]:
    """Return the candidates that make a difference."""
    values = [candidate for candidate in candidates if not candidate.weights]
    wide, fine = raised(options, values), raised(options, candidates)
    outputs = evaluator.start(programs.draft(fine, wide), SAMPLES).outputs()
    prices = _Prices(programs, options, values)
    measured: list[Measured] = []
    waiting: deque[tuple[Candidate, Pending]] = deque()

    def finish() -> None:
        candidate, pending = waiting.popleft()
        noise = evaluator.distance(outputs, pending.outputs())
        if noise > 0:
            measured.append(prices.measured(candidate, noise))
        done = len(candidates) - len(waiting)
        progress("measuring layers", done, len(candidates))

    for candidate in candidates:
        back = raised(fine, [replace(candidate, after=candidate.before)])
        program = programs.draft(back, wide, lowered=candidate, before=options)
        waiting.append((candidate, evaluator.start(program, SAMPLES)))
        if len(waiting) > AHEAD:
            finish()
    while waiting:
        finish()
    return measured


class _Prices:
    """What single candidates cost in a program without any, and weights in one whose values are raised."""

    def __init__(
        self,
        programs: Programs,
        options: QuantizeOptions,
        values: Sequence[Candidate],
    ) -> None:
        self._programs, self._options, self._values = programs, options, values
        self._wide = raised(options, values)
        self._low = programs.draft(options, options)
        self._low_beside = price(programs.draft(self._wide, options))

    def measured(self, candidate: Candidate, noise: float) -> Measured:
        """Return a candidate with its noise and its prices."""
        low, high = self._low, self._draft(self._options, candidate)
        work = _difference(cost(high).work, cost(low).work)
        alone, reads = price(high) - price(low), self._reads(candidate)
        if reads is None:
            return Measured(candidate, noise, work, alone)
        beside = price(self._draft(self._wide, candidate)) - self._low_beside
        return Measured(candidate, noise, work, alone, reads, beside)

    def _draft(self, options: QuantizeOptions, candidate: Candidate) -> Proven:
        return self._programs.draft(raised(options, [candidate]), self._options)

    def _reads(self, candidate: Candidate) -> Candidate | None:
        if not candidate.weights:
            return None
        read = values_read(self._programs.model, candidate.names)
        return next(
            (value for value in self._values if read & {*value.names}), None
        )


def _difference(high: Work, low: Work) -> Work:
    return Work(
        high.multiply_accumulates - low.multiply_accumulates,
        high.table_reads - low.table_reads,
        high.element_operations - low.element_operations,
        high.bytes_moved - low.bytes_moved,
    )


def size(program: Program) -> int:
    """Return the bytes of a program's constants: its weights and tables."""
    return sum(array.nbytes for array in program.constants)
