"""Measures the noise that each candidate adds to the outputs, and the price of removing it.

The noises are measured on programs, one at a time. The base has all candidates raised.
In it one value, or one layer's weights, is lowered, and the outputs of the two programs
are compared with each other, not with float: so the difference is the noise of this
candidate alone. In a program of 8-bit values each change would re-randomise every later
rounding, which hides the effect of most candidates. Noises measured this way very nearly
add up. The price is that of the one upgrade in the program without any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cvm.program import Program
from cvm.proof.cost import Work, cost
from cvm.proof.validate import Proven
from mrt.progress import Progress
from mrt.quantize import QuantizeOptions
from mrt.tune.candidates import Candidate, raised
from mrt.tune.evaluator import Evaluator, Pending
from mrt.tune.price import price
from mrt.tune.programs import Programs

SAMPLES = 12  # the number of held-back samples that are used
AHEAD = 2  # programs whose runs may wait while the next one is written


@dataclass(frozen=True)
class Measured:
    """A measured candidate.

    `noise` is removed from the outputs if the candidate is raised; `work` and `price`
    are what the raised program takes more.
    """

    candidate: Candidate
    noise: float
    work: Work
    price: int

    @property
    def gain_per_price(self) -> float:
        """The noise removed for each unit of the price; candidates without a price come first."""
        return self.noise / max(self.price, 1)


def measure(
    programs: Programs,
    evaluator: Evaluator,
    options: QuantizeOptions,
    candidates: Sequence[Candidate],
    progress: Progress,
) -> list[Measured]:
    """Return the candidates that make a difference, those with the most gain for their price first."""
    values = [item for item in candidates if not item.weights]
    wide, fine = raised(options, values), raised(options, candidates)
    outputs = evaluator.start(programs.draft(fine, wide), SAMPLES).outputs()
    start = programs.draft(options, options)
    found: list[Measured] = []
    waiting: deque[tuple[Candidate, Pending]] = deque()

    def finish() -> None:
        item, pending = waiting.popleft()
        noise = evaluator.distance(outputs, pending.outputs())
        if noise > 0:
            higher = programs.draft(raised(options, [item]), options)
            found.append(_measured(item, noise, start, higher))
        done = len(candidates) - len(waiting)
        progress("measuring layers", done, len(candidates))

    for item in candidates:
        back = raised(fine, [replace(item, after=item.before)])
        program = programs.draft(back, wide, lowered=item, before=options)
        waiting.append((item, evaluator.start(program, SAMPLES)))
        if len(waiting) > AHEAD:
            finish()
    while waiting:
        finish()
    return sorted(
        found, key=lambda item: (-item.gain_per_price, item.candidate.names)
    )


def _measured(
    item: Candidate, noise: float, low: Proven, high: Proven
) -> Measured:
    work = _difference(cost(high).work, cost(low).work)
    return Measured(item, noise, work, price(high) - price(low))


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
