"""3x3 convolutions with fewer products: exact at the ends of what their transforms hold. Engine == reference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from cvm.program import IntArray
from cvm.runtime import native
from cvm.runtime.native import Engine
from tests.support.engine_cases import Case

pytestmark = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)

PLAIN = ((1, 1), (1, 1), (1, 1, 1, 1))
TRANSFORMING = ("portable", "avx2", "avxvnni", "avx512vnni", "neon")
ENDS = (-128, 127)
# Signs of x for which a line of its transform is greatest.
SIGNS = (
    (1, 0, -1, 0, 1, 0), (0, -1, -1, 1, 1, 0), (0, 1, -1, -1, 1, 0),
    (0, -1, -1, 1, 1, 0), (0, 1, -1, -1, 1, 0), (0, 1, 0, -1, 0, 1),
)  # fmt: skip


def images(size: tuple[int, ...]) -> Iterator[IntArray]:
    """Anything, one end or the other by chance, and what makes each place of the transformed tiles greatest."""
    random = np.random.default_rng(3)
    yield random.integers(*ENDS, size, endpoint=True)
    yield random.choice(ENDS, size)
    for down in SIGNS:
        for right in SIGNS:
            tile = np.outer(down, right)
            # Tiles of x begin every four places, one place outside the image.
            signs = np.array(
                [
                    [tile[(v + 1) % 4, (u + 1) % 4] for u in range(size[2])]
                    for v in range(size[1])
                ]
            )
            plane = np.where(signs > 0, 127, -128)
            yield np.broadcast_to(plane[None, :, :, None], size)


def require_exact(
    x: IntArray,
    weights: IntArray,
    zero_point: int = 0,
    behind: str = "",
    taken: bool = True,
) -> None:
    case = Case()
    case.draft.most_elements = 2**16
    bias = np.arange(len(weights)) * 1001 - 9999
    sums = case.conv2d(case.input(x, "i8"), weights, bias, PLAIN, zero_point)
    if behind:
        case.rescale(sums, [2**30 + 7], [44], behind)
    case.assert_equal_everywhere()
    form = case.proven()
    for isa in native.isas():
        products = Engine(form, isa=isa).core.products()
        wanted = taken and isa in TRANSFORMING
        assert ("winograd" in products) == wanted, isa


@pytest.mark.parametrize("zero_point", [-128, 0, 127])
def test_values_at_their_ends(zero_point: int) -> None:
    random = np.random.default_rng(1)
    for x in images((1, 12, 8, 64)):
        weights = random.choice(ENDS, (32, 3, 3, 64))
        require_exact(x, weights, zero_point)


@pytest.mark.parametrize("end", ENDS)
def test_sums_as_great_as_they_can_be(end: int) -> None:
    """Each window of 255 from the zero point and weights of one end; the sums modulo 2^32 overflow many times."""
    weights = np.full((32, 3, 3, 64), end)
    require_exact(np.full((1, 12, 12, 64), 127), weights, -128)
    require_exact(np.full((1, 12, 12, 64), -128), weights, 127)


def test_sums_that_are_not_known_from_their_multiple_are_added_plainly() -> (
    None
):
    """2^25 / (255 * 128 * 9) = 114.2 channels."""
    for channels, taken in ((112, True), (128, False)):
        weights = np.full((32, 3, 3, channels), -128)
        weights[:, 1] = -127
        x = np.full((1, 12, 12, channels), 127)
        x[0, 0, 0, 0] = -128
        require_exact(x, weights, -128, taken=taken)


@pytest.mark.parametrize("behind", ["", "i8", "i16", "i32"])
def test_images_channels_and_outputs_of_any_number(behind: str) -> None:
    random = np.random.default_rng(2)
    sizes = [
        ((1, 11, 12, 64), 64),
        ((2, 8, 7, 72), 70),
        ((1, 4, 140, 96), 33),
        ((3, 19, 4, 65), 49),
    ]
    for size, outputs in sizes:
        x = random.integers(*ENDS, size, endpoint=True)
        weights = random.integers(-127, 128, (outputs, 3, 3, size[3]))
        require_exact(x, weights, 3, behind)
