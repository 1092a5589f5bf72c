"""How much noise each candidate adds to the outputs, and what it costs to take that away: measured on programs, one at a time.

The program measured against has its values at 16 bits and its weights as they are. In it one value is lowered, or one layer's
weights raised, and the outputs of the two programs are compared with each other, not with float: so what is seen is this one
candidate's noise and nothing else. Against a program of 8-bit values each change would throw all later roundings anew, and
that drowns what most candidates do. Noises measured so very nearly add up.
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

SAMPLES = 12  # of those held back, as many as this
AHEAD = 2  # programs whose runs may wait while the next one is written


@dataclass(frozen=True)
class Measured:
    """`noise` is taken off the outputs if the candidate is raised, `work` is what the raised program does more."""

    candidate: Candidate
    noise: float
    work: Work

    @property
    def worth(self) -> float:
        """Noise taken off for each unit of cost; what costs nothing goes first."""
        return self.noise / max(self.work.cost, 1)


def measure(
    make: Make,
    evaluator: Evaluator,
    options: QuantizeOptions,
    candidates: Sequence[Candidate],
    progress: Progress,
) -> list[Measured]:
    """Those candidates that make a difference, best worth first."""
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
    return sorted(found, key=lambda item: (-item.worth, item.candidate.names))


def _difference(high: Work, low: Work) -> Work:
    return Work(
        high.multiply_accumulates - low.multiply_accumulates,
        high.table_reads - low.table_reads,
        high.element_operations - low.element_operations,
        high.bytes_moved - low.bytes_moved,
    )


def size(program: Program) -> int:
    """Bytes of a program's constants: its weights and tables."""
    return sum(array.nbytes for array in program.constants)
