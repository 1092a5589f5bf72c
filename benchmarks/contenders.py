"""The contenders: our engine and our reference here, the peers in peers.py.

All compute the same image on n threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import peers
from benchmarks.figures import FAST, OURS, REFERENCE
from benchmarks.models import Model, fast_on_avx2
from benchmarks.peers import Ready, Unavailable
from cvm.reference import interpreter
from cvm.runtime import boundary, native


@dataclass(frozen=True)
class Contender:
    """A contender, with the function that prepares it for a model and a number of threads.

    `slow` contenders are timed only a few times, without a warm-up.
    """

    name: str
    ready: Callable[[Model, int], Ready]
    slow: bool = False


def peak(threads: int) -> Callable[[], float] | None:
    """Return a reader of the machine's int8 peak in giga-MAC/s, if the engine has one."""
    return partial(native.peak, threads) if native.available() else None


def engine(model: Model, threads: int) -> Ready:
    """Prepare `cvm.load(path).run(integers, threads=n)`.

    The image becomes integers before the clock starts.
    """
    if not native.available():
        raise Unavailable("the engine is not built here")
    program = model.program
    integers = boundary.quantize(program.program, model.images[0])
    return Ready(
        lambda: program.run(integers, threads=threads),
        partial(_real, model),
        native.chosen_isa(),
    )


def fast_engine(model: Model, threads: int) -> Ready:
    """Prepare our engine with the program that `--fast-on avx2` makes."""
    return engine(fast_on_avx2(model), threads)


def reference(model: Model, threads: int) -> Ready:
    """Prepare the interpreter that defines the right answer."""
    if threads != 1:
        raise Unavailable("it runs one image on one thread only")
    program = model.program
    integers = boundary.quantize(program.program, model.images[0])
    (sample,) = boundary.split_samples(program.program, integers)
    return Ready(
        lambda: interpreter.run(program, sample), partial(_real, model)
    )


def _real(model: Model, result: Any) -> npt.NDArray[np.float64]:
    (real,) = boundary.dequantize(model.program.program, result).values()
    return np.asarray(real).reshape(-1)


CONTENDERS = (
    Contender(OURS, engine),
    Contender(FAST, fast_engine),
    Contender(REFERENCE, reference, slow=True),
    Contender("onnxruntime-float32", peers.onnxruntime_float32),
    Contender("onnxruntime-int8", peers.onnxruntime_int8),
    Contender("openvino-int8", peers.openvino_int8),
)
