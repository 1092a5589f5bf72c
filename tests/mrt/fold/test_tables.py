"""compose_tables: a table takes over the function that alone follows it, to the entry."""

import numpy as np

from cvm.program import Input, Meaning, TensorType
from cvm.proof.validate import validate
from mrt.fold.tables import compose_tables
from mrt.quantize.builder import ProgramBuilder
from tests.mrt.fold.test_fold import names, require_equal

ENTRIES = np.arange(-128, 128).astype(np.int8)
WHOLE = {"input_zp": 0, "output_zp": 0, "dtype": "i16"}


def program(*shifts: int, output: bool = False, zero_points=(0, 0)):
    """A table of all integers, and for each half of it a rescale by a quarter of 2^-(shift - 32)."""
    builder = ProgramBuilder()
    x = builder.input(
        Input("x", TensorType("i8", (1, 4)), -128, 127), Meaning(1.0, 0)
    )
    table = builder.emit("table", x, builder.constant(ENTRIES))
    for half, (shift, zero_point) in enumerate(
        zip(shifts, zero_points, strict=True)
    ):
        part = builder.emit("slice", table, start=(0, 2 * half), size=(1, 2))
        wide = builder.emit(
            "rescale",
            part,
            builder.constant(np.array([2**30], np.int32)),
            builder.constant(np.array([shift], np.int8)),
            **{**WHOLE, "input_zp": zero_point},
        )
        builder.annotate(wide, Meaning(0.5, 0, f"half {half}"))
        builder.output(f"y{half}", wide, Meaning(1.0, 0))
    if output:
        builder.output("table", table, Meaning(1.0, 0))
    return validate(builder.finish({}))


def test_a_function_that_follows_a_table_in_all_parts_becomes_its_entries():
    """Times four: 2^30 / 2^28."""
    before = program(28, 28)
    found = compose_tables(before)
    after = validate(found.program)
    require_equal(before, after)
    assert names(after) == {"table": 1, "slice": 2}
    (entries,) = found.program.constants
    np.testing.assert_array_equal(entries, 4 * np.arange(-128, 128))
    assert entries.dtype == np.int16
    meanings = found.program.metadata.values
    assert {m.source for m in meanings.values()} == {"half 0", "half 1"}


def test_other_functions_and_readers_are_left():
    for before in (
        program(28, 29),
        program(28, 28, zero_points=(0, 1)),
        program(28, 28, output=True),
    ):
        found = compose_tables(before)
        require_equal(before, validate(found.program))
        assert names(validate(found.program)) == names(before)
