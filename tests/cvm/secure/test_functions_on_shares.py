"""The functions that run on shares give the reference's integers; here in clear, compiled by XLA, so that no SPU is needed."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")

from cvm.program import (  # noqa: E402
    Input,
    Instruction,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import validate  # noqa: E402
from cvm.reference import interpreter  # noqa: E402
from cvm.secure import lowerings  # noqa: E402
from cvm.secure.function import function_on_shares  # noqa: E402
from cvm.secure.weights import (  # noqa: E402
    bounds_of,
    hidden_weights,
    weights_of,
    without_weights,
)
from tests.conformance.test_vectors import (  # noqa: E402
    load_vectors,
    program_of_vector,
)
from tests.support.cvm_programs import (  # noqa: E402
    MAKERS,
    random_inputs,
    random_program,
)

CHANGED = sorted(lowerings.MAKERS)


def in_clear(form, sample, hidden=()):
    """Return the outputs of the function on shares, by name."""
    program = form.program
    weights = hidden or weights_of(program)
    function = function_on_shares(form, bounds_of(form, hidden), weights)
    given = [program.constants[v - program.first_constant] for v in weights]
    inputs = [sample[item.name] for item in program.inputs]
    with jax.enable_x64(True):
        found = jax.jit(function)(*inputs, *given)
    names = [item.name for item in program.outputs]
    return dict(zip(names, map(np.asarray, found), strict=True))


def require_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array), name


def layers():
    """Return x -> dense -> rescale to i8 -> table -> y, with room for saturation at both ends."""
    x = TensorType("i8", (1, 3))
    w = np.array([[1, -2, 3], [127, 127, 127]], np.int8)
    b = np.array([5, -5], np.int32)
    multiplier = np.array([1 << 30, 1 << 30], np.int32)
    shift = np.array([31, 36], np.int8)
    values = np.arange(-128, 128, dtype=np.int8)[::-1].copy()
    steps = (
        Instruction("dense", (0, 1, 2), {"input_zp": 1}),
        Instruction(
            "rescale",
            (6, 3, 4),
            {"input_zp": 0, "output_zp": 2, "dtype": "i8"},
        ),
        Instruction("table", (7, 5)),
    )
    return Program(
        (Input("x", x, -128, 127),),
        (w, b, multiplier, shift, values),
        steps,
        (Output("y", 8),),
    )


@pytest.mark.parametrize("name", CHANGED)
def test_vectors_of_changed_instructions_give_their_answers(name):
    for own, vector in load_vectors():
        if own == name and "outputs" in vector:
            program, sample = program_of_vector(name, vector)
            form = validate(program)
            require_same(in_clear(form, sample), interpreter.run(form, sample))


@pytest.mark.parametrize("seed", range(4))
def test_a_random_program_gives_the_integers_of_the_reference(seed):
    form = validate(random_program(seed, 10 + seed, tuple(MAKERS)))
    sample = random_inputs(form.program, seed)
    expected = interpreter.run(form, sample)
    require_same(in_clear(form, sample), expected)


def test_division_is_exact_at_the_ends():
    """By hand: toward zero, with every pair of signs, and the greatest quotients."""
    x = np.array([-(2**31), 2**31 - 1, 7, -7, 0, 2**31 - 1], np.int32)
    y = np.array([2, 1, 2, 2, 5, 2**31 - 1], np.int32)
    type_ = TensorType("i32", (6,))
    program = Program(
        (
            Input("x", type_, -(2**31), 2**31 - 1),
            Input("y", type_, 1, 2**31 - 1),
        ),
        (),
        (Instruction("intdiv", (0, 1)),),
        (Output("q", 2),),
    )
    found = in_clear(validate(program), {"x": x, "y": y})
    assert found["q"].tolist() == [-(2**30), 2**31 - 1, 3, -3, 0, 1]
    below = Program(
        (program.inputs[0], Input("y", type_, -9, -2)),
        *(program.constants, program.instructions, program.outputs),
    )
    y = np.array([-2, -9, -2, -3, -9, -4], np.int32)
    found = in_clear(validate(below), {"x": x, "y": y})
    assert found["q"].tolist() == [2**30, -238609294, -3, 2, 0, -536870911]


def operations(form, hidden=()):
    """Return the names of jax's operations in the function on shares."""
    program = form.program
    weights = hidden or weights_of(program)
    function = function_on_shares(form, bounds_of(form, hidden), weights)
    given = [program.constants[v - program.first_constant] for v in weights]
    inputs = [np.zeros(i.type.shape, np.int8) for i in program.inputs]
    with jax.enable_x64(True):
        traced = jax.make_jaxpr(function)(*inputs, *given)
    return [item.primitive.name for item in traced.jaxpr.eqns]


def narrow(high):
    """Return a rescale by 1/2 of x in -10..high to i8, which saturates from 256 on."""
    return Program(
        (Input("x", TensorType("i16", (1, 2)), -10, high),),
        (np.array([1 << 30], np.int32), np.array([31], np.int8)),
        (
            Instruction("cast", (0,), {"dtype": "i32"}),
            Instruction(
                "rescale",
                (3, 1, 2),
                {"input_zp": 0, "output_zp": 0, "dtype": "i8"},
            ),
        ),
        (Output("y", 4),),
    )


@pytest.mark.parametrize(
    ("high", "stops"), [(254, []), (255, ["min"]), (2000, ["min"])]
)
def test_a_rescale_saturates_only_where_the_proof_leaves_it(high, stops):
    """254 / 2 = 127 fits; 255 / 2 rounds to 128."""
    found = operations(validate(narrow(high)))
    assert [name for name in found if name in ("min", "max")] == stops


@pytest.mark.parametrize(
    ("multiplier", "shift", "shifts"),
    [
        ([3 << 29, 1 << 30], [29, 20], False),  # by 3 and 1024
        ([3 << 29, 1 << 30], [29, 31], True),  # by 3 and a half
        ([0, 32767 << 16], [62, 16], False),
    ],
)
def test_a_rescale_by_integers_needs_no_shift(multiplier, shift, shifts):
    program = Program(
        (Input("x", TensorType("i8", (1, 2)), -128, 127),),
        (np.array(multiplier, np.int32), np.array(shift, np.int8)),
        (
            Instruction(
                "rescale",
                (0, 1, 2),
                {"input_zp": -5, "output_zp": 0, "dtype": "i32"},
            ),
        ),
        (Output("y", 3),),
    )
    form = validate(program)
    found = operations(form)
    assert ("shift_right_arithmetic" in found) == shifts, found
    for end in (-128, 127):
        sample = {"x": np.full((1, 2), end, np.int8)}
        require_same(in_clear(form, sample), interpreter.run(form, sample))


def test_hidden_weights_decide_nothing():
    """The same operations for other weights: with zeros no sum could saturate."""
    program = layers()
    shown = without_weights(program)
    assert shown.metadata is None
    assert hidden_weights(program) == (1, 2)
    assert not shown.constants[0].any() and not shown.constants[1].any()
    assert shown.constants[2:] == program.constants[2:]
    own, other = validate(program), validate(shown)
    assert operations(own, (1, 2)) == operations(other, (1, 2))
    assert operations(own) != operations(other)


def test_hidden_weights_that_saturate_give_the_reference():
    form = validate(layers())
    for values in ([1, 2, 3], [-128, -128, -128], [127, 127, 127]):
        sample = {"x": np.array([values], np.int8)}
        expected = interpreter.run(form, sample)
        require_same(in_clear(form, sample), expected)
        require_same(in_clear(form, sample, (1, 2)), expected)


def test_a_wrong_lowering_is_seen(monkeypatch):
    monkeypatch.setitem(
        lowerings.MAKERS, "table", lambda call: lambda x, values: x
    )
    form = validate(layers())
    sample = {"x": np.array([[1, 2, 3]], np.int8)}
    with pytest.raises(AssertionError):
        require_same(in_clear(form, sample), interpreter.run(form, sample))
