"""The programs of all configs give the engine's bytes by IREE and in Arm's reference model of TOSA, on real samples.

Models are converted with few samples, as `python -m tests.regression` does. Images of
ImageNet's size are one sample each, since Arm's model computes them for minutes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from cvm.export.tosa.model import graph_of
from cvm.program import IntArray
from cvm.proof.cost import cost
from cvm.proof.validate import Proven
from cvm.runtime import boundary, native
from cvm.runtime.native import Engine
from cvm.tosa.graph import to_bytes
from mrt.config import load_config
from mrt.pipeline import convert
from mrt.project import load_to_run
from tests.end_to_end.test_program_ids import CONFIGS, NAMES
from tests.regression.cases import Published, cases
from tests.regression.state import samples_of
from tests.support import mlir_programs, tosa_programs
from tests.support.shared_data import needs_shared

SAMPLES = 8
LARGE = 10**8
"""Multiply-accumulates of one sample from which on one is enough."""

pytestmark = [
    pytest.mark.slow,
    needs_shared,
    pytest.mark.skipif(
        not native.available(), reason="the engine is not compiled"
    ),
]
Arrays = dict[str, IntArray]


@lru_cache(maxsize=1)
def answered(name: str) -> tuple[Proven, list[tuple[Arrays, Arrays]]]:
    """A config's program, and samples with the engine's answers."""
    path = load_config(CONFIGS / f"{name}.toml").model.path
    (case,) = [
        case
        for case in cases()
        if case.path.name == path.name and not isinstance(case, Published)
    ]
    config = case.config
    conversion = convert(
        config, table=None, progress=lambda what, done, total: None
    )
    form, model = conversion.proven, load_to_run(config).model
    samples = samples_of(config, model, conversion.model.model)
    engine, found = Engine(form), []
    most = 1 if cost(form).work.multiply_accumulates > LARGE else SAMPLES
    for _, reals in zip(range(most), samples, strict=False):
        integers = boundary.quantize(form.program, reals)
        found.append((integers, engine.run(integers)))
    return form, found


@pytest.mark.skipif(
    mlir_programs.compiler is None, reason=mlir_programs.NO_IREE
)
@pytest.mark.parametrize("name", NAMES)
def test_iree_gives_the_bytes_of_the_engine(name):
    form, samples = answered(name)
    main = mlir_programs.compiled(mlir_programs.module_of(form))["main"]
    for integers, expected in samples:
        found = mlir_programs.called(main, form, integers)
        require_equal(expected, found)


@pytest.mark.skipif(not tosa_programs.HAS_TOSA, reason=tosa_programs.NO_TOSA)
@pytest.mark.parametrize("name", NAMES)
def test_arms_reference_model_gives_the_bytes_of_the_engine(name):
    form, samples = answered(name)
    graph = to_bytes(graph_of(form))
    jobs = [(graph, list(integers.values())) for integers, _ in samples]
    answers = tosa_programs.answers_of(jobs)
    for answer, (_, expected) in zip(answers, samples, strict=True):
        assert answer.status == "TOSA_VALID", answer.error
        require_equal(
            {port: tosa_programs.signed(a) for port, a in expected.items()},
            dict(zip(expected, answer.outputs, strict=True)),
        )


def require_equal(expected: Arrays, found: Arrays) -> None:
    assert list(expected) == list(found)
    for port, array in expected.items():
        assert found[port].dtype == array.dtype
        assert np.array_equal(found[port], array), port
