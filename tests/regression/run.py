"""All models, two at a time, each in a process of its own, whose memory tells what a conversion takes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from tests.regression.cases import Case
from tests.regression.state import State, state_of

AT_ONCE = 2


def states_of(chosen: Sequence[Case]) -> Iterator[tuple[str, State]]:
    """Name and state of each, in order; the largest files are begun first."""
    context = multiprocessing.get_context(
        "spawn"
    )  # onnxruntime's threads do not survive a fork
    order = sorted(
        chosen, key=lambda case: case.path.stat().st_size, reverse=True
    )
    with ProcessPoolExecutor(
        AT_ONCE, mp_context=context, max_tasks_per_child=1
    ) as pool:
        states = {case.name: pool.submit(state_of, case) for case in order}
        for case in chosen:
            yield case.name, states[case.name].result()
