"""Measures the noise that each candidate adds to the outputs, and the cost of removing it.

The candidates are measured on programs, one at a time. The base program has its values
at 16 bits and its weights unchanged. In it one value is lowered, or one layer's weights
are raised, and the outputs of the two programs are compared with each other, not with
float: so the difference is the noise of this candidate alone. In a program of 8-bit
values each change would re-randomise every later rounding, which hides the effect of
most candidates. Noises measured this way very nearly add up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cvm.program import Program
from cvm.proof.cost import Work, cost
from cvm.proof.validate import Proven
from mrt.progress import Progress
from mrt.quantize import QuantizeOptions
from mrt.tune.candidates import WIDE_VALUES, Candidate, raised
from mrt.tune.evaluator import Evaluator, Pending

Make = Callable[[QuantizeOptions], Proven]

SAMPLES = 12  # the number of held-back samples that are used
AHEAD = 2  # programs whose runs may wait while the next one is written


@dataclass(frozen=True)
class Measured:
    """A measured candidate.

    `noise` is removed from the outputs if the candidate is raised; `work` is the
    additional work of the raised program.
    """

    candidate: Candidate
    noise: float
    work: Work

    @property
    def gain_per_cost(self) -> float:
        """The noise removed for each unit of cost; candidates without cost come first."""
        return self.noise / max(self.work.cost, 1)


def measure(
    make: Make,
    evaluator: Evaluator,
    options: QuantizeOptions,
    candidates: Sequence[Candidate],
    progress: Progress,
) -> list[Measured]:
    """Return the candidates that make a difference, those with the most gain per cost first."""
    wide = raised(
        options,
        [
            replace(item, after=WIDE_VALUES)
            for item in candidates
            if not item.weights
        ],
    )
    base = make(wide)
    outputs = evaluator.start(base, SAMPLES).outputs()
    found: list[Measured] = []
    waiting: deque[tuple[Candidate, Proven, Pending]] = deque()

    def finish() -> None:
        item, program, pending = waiting.popleft()
        high, low = (program, base) if item.weights else (base, program)
        noise = evaluator.distance(outputs, pending.outputs())
        if noise > 0:
            found.append(
                Measured(
                    item, noise, _difference(cost(high).work, cost(low).work)
                )
            )
        done = len(candidates) - len(waiting)
        progress("measuring layers", done, len(candidates))

    for item in candidates:
        changed = item if item.weights else replace(item, after=item.before)
        program = make(raised(wide, [changed]))
        waiting.append((item, program, evaluator.start(program, SAMPLES)))
        if len(waiting) > AHEAD:
            finish()
    while waiting:
        finish()
    return sorted(
        found, key=lambda item: (-item.gain_per_cost, item.candidate.names)
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
