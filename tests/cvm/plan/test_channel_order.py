"""Channels in another order give the same outputs, and values that are seen by their channels' numbers keep theirs."""

import numpy as np
import pytest

from cvm.plan.channel_groups import channel_groups
from cvm.plan.channel_order import order_channels
from cvm.proof.validate import Proven
from cvm.reference.interpreter import run
from tests.support.engine_cases import Case

CHANNELS = 24
RNG = np.random.default_rng(1)


def integers(*shape: int) -> np.ndarray:
    return RNG.integers(-128, 128, shape).astype(np.int8)


class Network(Case):
    """Two convolutions and what is between them, with different numbers for each channel."""

    def channels(self, x: int) -> int:
        return self.draft.types[x].shape[-1]

    def convolution(self, x: int, outputs: int, bias: int | None = None) -> int:
        weights = integers(outputs, 1, 1, self.channels(x))
        if bias is None:
            bias = self.array(integers(outputs).astype(np.int32), "i32")
        return self.bytes_of(
            self.draft.apply(
                "conv2d", x, self.array(weights, "i8"), bias,
                pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1), groups=1, input_zp=3,
            )
        )  # fmt: skip

    def array(self, array: np.ndarray, dtype: str) -> int:
        return self.draft.array(array, dtype)

    def bytes_of(self, x: int) -> int:
        channels = self.channels(x)
        multipliers = RNG.integers(1 << 30, 1 << 31, channels).tolist()
        return self.rescale(x, multipliers, [39] * channels, "i8")

    def first(self) -> int:
        return self.convolution(
            self.input(integers(1, 6, 6, 8), "i8"), CHANNELS
        )


def depthwise(case: Network, x: int) -> int:
    channels = case.channels(x)
    return case.bytes_of(
        case.draft.apply(
            "conv2d", x, case.array(integers(channels, 3, 3, 1), "i8"),
            case.array(integers(channels).astype(np.int32), "i32"),
            pad=(1, 1, 1, 1), stride=(1, 1), dilation=(1, 1), groups=channels, input_zp=0,
        )
    )  # fmt: skip


def pooled(case: Network, x: int) -> int:
    return case.draft.apply(
        "max_pool2d", x, kernel=(2, 2), stride=(2, 2), pad=(0, 0, 0, 0)
    )


def looked_up(case: Network, x: int) -> int:
    return case.draft.apply("table", x, case.array(integers(256), "i8"))


def with_numbers(case: Network, x: int) -> int:
    """Numbers of each channel, and one for all."""
    for channels in (case.channels(x), 1):
        numbers = integers(1, 1, 1, channels).astype(np.int32)
        wide = case.draft.apply("cast", x, dtype="i32")
        sums = case.draft.apply("add", wide, case.array(numbers, "i32"))
        x = case.draft.apply("cast", case.clamp(sums, "i8"), dtype="i8")
    return x


def sum_of(case: Network, a: int, b: int) -> int:
    wide = [case.draft.apply("cast", x, dtype="i32") for x in (a, b)]
    sums = case.draft.apply("add", *wide)
    return case.draft.apply("cast", case.clamp(sums, "i8"), dtype="i8")


def added_to_itself(case: Network, x: int) -> int:
    return sum_of(case, x, looked_up(case, x))


def summed_over_places(case: Network, x: int) -> int:
    wide = case.draft.apply("cast", x, dtype="i32")
    sums = case.draft.apply("reduce_sum", wide, axis=1)
    return case.bytes_of(sums)


def one_below_the_other(case: Network, x: int) -> int:
    return case.draft.apply("concat", x, looked_up(case, x), axis=1)


def in_a_line(case: Network, x: int) -> int:
    return case.draft.apply("reshape", x, shape=(1, 1, 36, CHANNELS))


def turned(case: Network, x: int) -> int:
    return case.draft.apply("transpose", x, perm=(0, 2, 1, 3))


FREE = [
    depthwise,
    pooled,
    looked_up,
    with_numbers,
    added_to_itself,
    summed_over_places,
    one_below_the_other,
    in_a_line,
    turned,
]


def side_by_side(case: Network, x: int) -> int:
    return case.draft.apply("concat", x, looked_up(case, x), axis=3)


def channels_apart(case: Network, x: int) -> int:
    return case.draft.apply("reshape", x, shape=(1, 6, 12, CHANNELS // 2))


def channels_turned(case: Network, x: int) -> int:
    return case.draft.apply("transpose", x, perm=(0, 3, 2, 1))


def cut(case: Network, x: int) -> int:
    size = (1, 6, 6, CHANNELS - 2)
    return case.draft.apply("slice", x, start=(0, 0, 0, 1), size=size)


def with_an_input(case: Network, x: int) -> int:
    own = case.input(integers(1, 6, 6, CHANNELS), "i32")
    wide = case.draft.apply("cast", x, dtype="i32")
    greatest = case.draft.apply("maximum", wide, own)
    return case.draft.apply("cast", greatest, dtype="i8")


def in_two_groups(case: Network, x: int) -> int:
    return case.bytes_of(
        case.draft.apply(
            "conv2d", x, case.array(integers(8, 1, 1, CHANNELS // 2), "i8"),
            case.array(integers(8).astype(np.int32), "i32"),
            pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1), groups=2, input_zp=0,
        )
    )  # fmt: skip


KEPT = [
    side_by_side,
    channels_apart,
    channels_turned,
    cut,
    with_an_input,
    in_two_groups,
]


BLOCKS = [
    depthwise,
    looked_up,
    with_numbers,
    added_to_itself,
    side_by_side,
    in_two_groups,
]


def network(between) -> tuple[Proven, Network]:
    """What the first convolution gives is also read by one directly."""
    case = Network()
    x = case.first()
    case.convolution(x, 16)
    case.convolution(between(case, x), 16)
    return case.proven(), case


def shuffled(weights: np.ndarray) -> np.ndarray:
    return RNG.permutation(len(weights))


def changed(before: Proven, after: Proven) -> int:
    """How many constants are others."""
    return sum(
        old.tobytes() != new.tobytes()
        for old, new in zip(
            before.program.constants, after.program.constants, strict=True
        )
    )


def assert_same_outputs(before: Proven, after: Proven, sample) -> None:
    expected, found = run(before, sample), run(after, sample)
    for name, array in expected.items():
        np.testing.assert_array_equal(array, found[name])


@pytest.mark.parametrize("between", FREE)
def test_what_works_by_channels_takes_them_in_any_order(between):
    form, case = network(between)
    other = order_channels(form, shuffled)
    # The first convolution's weights, bias and multipliers, and the others' weights.
    assert changed(form, other) >= 5
    assert_same_outputs(form, other, case.sample)


@pytest.mark.parametrize("between", KEPT)
def test_what_sees_channels_by_number_keeps_their_order(between):
    form, case = network(between)
    other = order_channels(form, shuffled)
    first = form.program.instructions[0].operands[1]
    index = first - form.program.first_constant
    assert other.program.constants[index] is form.program.constants[index]
    assert_same_outputs(form, other, case.sample)


def test_an_output_keeps_its_order():
    case = Network()
    x = case.first()
    case.convolution(x, 16)
    case.draft.apply(
        "reduce_max", case.draft.apply("cast", x, dtype="i32"), axis=1
    )
    form = case.proven()
    assert_same_outputs(form, order_channels(form, shuffled), case.sample)
    assert not [group for group in channel_groups(form) if group.readers]


@pytest.mark.parametrize(("outputs", "orders"), [(15, False), (16, True)])
def test_readers_of_less_than_a_panel_decide_no_order(outputs, orders):
    """Their weights would have to be filled up to sixteen times as many."""
    case = Network()
    case.convolution(case.first(), outputs)
    form = case.proven()
    assert (changed(form, order_channels(form, shuffled)) > 0) == orders


def test_weights_that_readers_share_count_once():
    case = Network()
    x = case.first()
    weights = case.array(np.full((16, 1, 1, CHANNELS), 5, np.int8), "i8")
    bias = case.array(np.zeros(16, np.int32), "i32")
    for _ in range(3):
        case.draft.apply(
            "conv2d", x, weights, bias,
            pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1), groups=1, input_zp=3,
        )  # fmt: skip
    rows: list[int] = []

    def noted(found: np.ndarray) -> np.ndarray:
        rows.append(found.shape[1])
        return np.arange(len(found))

    order_channels(case.proven(), noted)
    assert rows == [16]


def test_a_table_with_an_entry_for_each_channel_keeps_its_order():
    case = Network()
    x = case.convolution(case.input(integers(1, 2, 2, 8), "i8"), 256)
    case.convolution(looked_up(case, x), 16)
    form = case.proven()
    other = order_channels(form, shuffled)
    assert changed(form, other) == 4
    assert_same_outputs(form, other, case.sample)


def test_a_constant_image_keeps_its_order():
    case = Network()
    case.first()
    case.convolution(case.array(integers(1, 6, 6, CHANNELS), "i8"), 16)
    form = case.proven()
    assert_same_outputs(form, order_channels(form, shuffled), case.sample)


@pytest.mark.parametrize("even", [True, False])
def test_a_constant_that_is_shared_has_one_order(even):
    case = Network()
    numbers = np.full(CHANNELS, 7) if even else integers(CHANNELS)
    bias = case.array(numbers.astype(np.int32), "i32")
    x = case.input(integers(1, 6, 6, 8), "i8")
    for _ in range(3):
        x = case.convolution(x, CHANNELS, bias)
    form = case.proven()
    other = order_channels(form, shuffled)
    assert (changed(form, other) > 0) == even
    assert_same_outputs(form, other, case.sample)


@pytest.mark.parametrize("seed", range(20))
def test_networks_give_the_same_outputs_in_any_order(seed):
    """Blocks in a random order, each with a shortcut to one before."""
    rng, case = np.random.default_rng(seed), Network()
    values = [case.first()]
    for _ in range(6):
        between = BLOCKS[rng.integers(len(BLOCKS))]
        inner = between(case, case.convolution(values[-1], CHANNELS))
        x = case.convolution(inner, CHANNELS)
        values.append(sum_of(case, x, values[rng.integers(len(values))]))
    case.convolution(values[-1], 16)
    form = case.proven()
    other = order_channels(form, shuffled)
    assert changed(form, other) > 0
    assert_same_outputs(form, other, case.sample)
