"""Sums of bytes by instructions on 128 bits: where they stand, and each length, at both ends of the types."""

from __future__ import annotations

import numpy as np
import pytest

from cvm.export.web.folder import c_files
from cvm.export.web.vectors import with_vectors
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from tests.cvm.export.test_c_source import convolution, sums
from tests.support.c_programs import merged, prefixed
from tests.support.web_programs import WebProgram, needs_web

LENGTHS = range(
    1, 36
)  # none, one and two blocks of sixteen, with and without one of eight and a rest
LOW, HIGH = -128, 127


def product(length: int, zero_point: int) -> Program:
    """Return x by two rows of weights, the second of which makes the greatest products."""
    weights = np.random.default_rng(length).integers(-128, 128, (2, length))
    weights[1] = -128
    return Program(
        (Input("x", TensorType("i8", (2, length)), LOW, HIGH),),
        (weights.astype(np.int8), np.array([1, -2], np.int32)),
        (Instruction("dense", (0, 1, 2), {"input_zp": zero_point}),),
        (Output("y", 3),),
    )


@needs_web()
@pytest.mark.parametrize("zero_point", [0, LOW, HIGH])
def test_every_length_at_both_ends_of_the_types(tmp_path, zero_point):
    programs = [product(length, zero_point) for length in LENGTHS]
    random = np.random.default_rng(5)
    kinds = [
        lambda shape: np.full(shape, LOW),
        lambda shape: np.full(shape, HIGH),
        lambda shape: random.integers(LOW, HIGH + 1, shape),
    ]
    written = WebProgram.write(validate(merged(programs)), tmp_path)
    text = (tmp_path / "exported.c").read_text()
    assert text.count("sum = dot(places") == len(LENGTHS)
    samples = [
        prefixed([{"x": kind((2, n)).astype(np.int8)} for n in LENGTHS])
        for kind in kinds
    ]
    assert written.differing(samples) == []


def test_what_multiplies_no_bytes_stays_as_it_is():
    source = c_files(validate(sums(("a", "b"))), "n")["n.c"]
    assert with_vectors(source) == source


def test_the_zero_point_is_added_with_its_sign_turned():
    """The convolution has the zero point -3."""
    source = c_files(validate(convolution()), "n")["n.c"]
    changed = with_vectors(source)
    assert "sum = dot(places, weights, 3, (last - first));" in changed
    assert changed.count("wasm_simd128.h") == 1
