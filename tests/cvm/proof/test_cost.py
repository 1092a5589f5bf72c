import pytest

from cvm.instructions import INSTRUCTIONS
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof import cost
from cvm.proof.validate import check
from tests.support.run_programs import chain, pair


def work(
    name: str, operands: list[str], result: str, **attributes: object
) -> tuple[int, int, int, int, int]:
    types = [_type(text) for text in (*operands, result)]
    found = cost.work_of(
        Instruction(name, (), attributes), types[:-1], types[-1]
    )  # type: ignore[arg-type]
    return (
        found.multiply_accumulates,
        found.table_reads,
        found.element_operations,
        found.bytes_moved,
        found.cost,
    )


def _type(text: str) -> TensorType:
    dtype, *shape = text.split()
    return TensorType(dtype, tuple(map(int, shape)))


@pytest.mark.parametrize(
    ("call", "macs", "reads", "operations", "moved"),
    [
        # 2 images of 5 x 6 places, each 8 outputs of 3 x 3 x 4 products; bytes 2*7*8*4 + 8*3*3*4 + 8*4 + 2*5*6*8*4
        (
            work(
                "conv2d", ["i8 2 7 8 4", "i8 8 3 3 4", "i32 8"], "i32 2 5 6 8"
            ),
            17280,
            0,
            0,
            448 + 288 + 32 + 1920,
        ),
        # groups: 4 input channels in 2 groups, so each output sees 2
        (
            work(
                "conv2d", ["i8 1 3 3 4", "i8 8 3 3 2", "i32 8"], "i32 1 1 1 8"
            ),
            144,
            0,
            0,
            36 + 144 + 32 + 32,
        ),
        # every input place meets every weight once
        (
            work(
                "conv2d_transpose",
                ["i8 1 2 2 3", "i8 5 2 2 3", "i32 5"],
                "i32 1 4 4 5",
            ),
            240,
            0,
            0,
            12 + 60 + 20 + 320,
        ),
        (
            work("dense", ["i8 2 10", "i8 3 10", "i32 3"], "i32 2 3"),
            60,
            0,
            0,
            20 + 30 + 12 + 24,
        ),
        (
            work("matmul", ["i8 2 3 4", "i8 2 4 5"], "i32 2 3 5"),
            120,
            0,
            0,
            24 + 40 + 120,
        ),
        (
            work("table", ["i8 1 6", "i16 256"], "i16 1 6"),
            0,
            6,
            0,
            6 + 512 + 12,
        ),
        (
            work("gather", ["i8 2 9 3", "i32 2 4"], "i8 2 4 3"),
            0,
            8,
            0,
            54 + 32 + 24,
        ),
        (
            work("interpolate", ["i16 2 3", "i8 513"], "i32 2 3"),
            0,
            12,
            24,
            12 + 513 + 24,
        ),
        (
            work("rescale", ["i32 1 6", "i32 1", "i8 1"], "i8 1 6"),
            0,
            0,
            24,
            24 + 4 + 1 + 6,
        ),
        (work("clamp", ["i8 6"], "i8 6"), 0, 0, 6, 12),
        (work("add", ["i32 2 1", "i32 1 3"], "i32 2 3"), 0, 0, 6, 8 + 12 + 24),
        (work("mul", ["i16 6", "i16 6"], "i32 6"), 0, 0, 12, 12 + 12 + 24),
        (work("intdiv", ["i32 6", "i32 6"], "i32 6"), 0, 0, 48, 72),
        (work("isqrt", ["i32 6"], "i32 6"), 0, 0, 192, 48),
        (work("select", ["bool 6", "i8 6", "i8 6"], "i8 6"), 0, 0, 6, 24),
        (work("reduce_sum", ["i32 4 5"], "i32 1 5"), 0, 0, 20, 80 + 20),
        (work("argmax", ["i8 4 5"], "i32 5"), 0, 0, 20, 20 + 20),
        # 5 entries a row: ceil(log2 5) = 3 rounds
        (work("argsort", ["i32 4 5"], "i32 4 5"), 0, 0, 60, 160),
        (work("argsort", ["i32 4 1"], "i32 4 1"), 0, 0, 4, 32),
        (
            work("max_pool2d", ["i8 1 4 4 3"], "i8 1 2 2 3", kernel=(2, 2)),
            0,
            0,
            48,
            48 + 12,
        ),
        (
            work("avg_pool2d", ["i8 1 4 4 3"], "i8 1 2 2 3", kernel=(2, 2)),
            0,
            0,
            96,
            48 + 12,
        ),
        (
            work("resize", ["i8 1 2 2 1"], "i32 1 4 4 1", mode="bilinear"),
            0,
            0,
            64,
            4 + 64,
        ),
        (
            work("resize", ["i8 1 2 2 1"], "i8 1 4 4 1", mode="nearest"),
            0,
            0,
            0,
            4 + 16,
        ),
        # 2 samples of 5 scores: 3 rounds; then each of 4 candidates against 3 kept ones
        (
            work(
                "nms",
                ["i32 2 5 4", "i32 2 5", "i32 2 1"],
                "i32 2 3",
                candidates=4,
            ),
            *(0, 0, 30 + 16 * 4 * 6, 160 + 40 + 8 + 24),
        ),
        (work("transpose", ["i16 2 3"], "i16 3 2"), 0, 0, 0, 24),
        (work("concat", ["i8 2", "i8 3"], "i8 5"), 0, 0, 0, 10),
    ],
)
def test_counts_follow_the_published_table(
    call: tuple[int, ...], macs: int, reads: int, operations: int, moved: int
) -> None:
    assert call == (
        macs,
        reads,
        operations,
        moved,
        macs + 8 * reads + 4 * operations + moved,
    )


def test_every_instruction_has_a_rule() -> None:
    assert cost.RULES.keys() == INSTRUCTIONS.keys()


def test_the_weights_of_version_1_never_change() -> None:
    assert cost.WEIGHTS_VERSION == 1
    assert cost.WEIGHTS == {
        "multiply_accumulates": 1,
        "table_reads": 8,
        "element_operations": 4,
        "bytes_moved": 1,
    }


def test_the_total_is_the_sum_over_instructions() -> None:
    # add i32[1,3] twice: 3 operations, 36 bytes: 48; clamp: 3, 24: 36; argmax: 3, 12 + 4: 28
    report = cost.cost(check(chain()))
    assert [work.cost for work in report.instructions] == [48, 36, 28]
    assert report.total == 112


def test_memory_is_the_most_that_values_hold_at_once() -> None:
    # x 12 bytes and its double 12; x goes; clamped 12; the double goes; best 4 beside the clamped, which is an output
    assert cost.memory(check(chain())) == 24
    # a and b are held until the sum of 16 bytes is there: 8 + 16 + 16
    assert cost.memory(check(pair())) == 40


def test_outputs_are_held_to_the_end() -> None:
    steps = (
        Instruction("add", (0, 0)),
        Instruction("clamp", (1,), {"min": 0, "max": 9}),
        Instruction("clamp", (2,), {"min": 0, "max": 8}),
    )
    x = Input("x", TensorType("i32", (1, 3)), 0, 9)
    types = {"kept": 36, "let go": 24}
    outputs = {
        "kept": (Output("sum", 1), Output("y", 3)),
        "let go": (Output("y", 3),),
    }
    for name, bytes_held in types.items():
        assert (
            cost.memory(check(Program((x,), (), steps, outputs[name])))
            == bytes_held
        )


def test_costs_beyond_64_bits_are_exact() -> None:
    size = 2**31 - 1
    found = work(
        "matmul",
        [f"i8 1 {size} {size}", f"i8 1 {size} {size}"],
        f"i32 1 {size} {size}",
    )
    assert found[0] == size**3
