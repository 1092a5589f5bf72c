"""What samples give to a program being written, asked for value by value."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from cvm.program import Input, Meaning, TensorType
from mrt.quantize.builder import MOST_RESULTS, ProgramBuilder
from mrt.refine.simulation import SHORT, Simulation

STEPS = 200


def test_a_state_beside_the_values_asked_for_is_not_computed_anew_from_the_start(
    monkeypatch,
):
    builder, sizes = ProgramBuilder(), []
    subprogram = builder.subprogram

    def counted(*arguments, **options):
        found = subprogram(*arguments, **options)
        sizes.append(len(found.program.instructions))
        return found

    monkeypatch.setattr(builder, "subprogram", counted)
    x = builder.input(
        Input("x", TensorType("i8", (1, 3)), -128, 127), Meaning(1.0, 0)
    )
    wide = builder.emit("cast", x, dtype="i32")
    state, expected = wide, np.array([[-3, 4, 100]])
    start = expected
    with ThreadPoolExecutor(2) as pool:
        simulation = Simulation(
            builder, [{"x": np.float32([[-3, 4, 100]])}] * 2, pool
        )
        for _ in range(
            STEPS
        ):  # as an LSTM's cell, of which a tanh is what the next product takes
            state = builder.emit(
                "clamp", builder.emit("add", state, wide), min=-1000, max=1000
            )
            expected = np.clip(expected + start, -1000, 1000)
            negative = builder.emit("negate", state, input_zp=0, output_zp=0)
            seen = builder.emit(
                "cast",
                builder.emit("clamp", negative, min=-50, max=50),
                dtype="i8",
            )
            for values in simulation.values(seen):
                assert np.array_equal(values, np.clip(-expected, -50, 50))
    assert max(sizes) <= SHORT + 10
    assert sum(sizes) < STEPS * SHORT


def test_a_subprogram_results_in_no_more_than_it_has_room_for():
    builder = ProgramBuilder()
    x = builder.input(
        Input("x", TensorType("i8", (1, 3)), -9, 9), Meaning(1.0, 0)
    )
    value = builder.emit("cast", x, dtype="i32")
    for _ in range(1200):  # each value is read by two
        negative = builder.emit("negate", value, input_zp=0, output_zp=0)
        value = builder.emit(
            "clamp", builder.emit("sub", value, negative), min=-9, max=9
        )
    known = frozenset({x})
    assert (
        len(builder.subprogram(value, known, short=100, room=2**29).results)
        == MOST_RESULTS + 1
    )
    assert (
        len(builder.subprogram(value, known, short=100, room=5 * 12).results)
        == 5 + 1
    )
    assert builder.subprogram(
        value, known, short=10**6, room=2**29
    ).results == [value]
