"""Where a sliding window meets its input: the geometry that convolutions and pooling share, one axis at a time."""

from __future__ import annotations

from cvm.reference.call import Call

MAX_STEP = 2**20  # the largest pad, stride, dilation or pooling kernel


def output_size(
    call: Call, constraint: str, size: int, window: int, pads: int, stride: int
) -> int:
    """How many windows fit when `pads` places are added: exactly, nothing left over, as TOSA demands."""
    room = size + pads - window
    call.require(
        room >= 0 and room % stride == 0,
        constraint,
        f"size {size} with {pads} of padding, window {window}, stride {stride}: the output size is not exact",
    )
    return room // stride + 1


def overlap(
    start: int, step: int, size: int, count: int
) -> tuple[slice, slice]:
    """The indices and the positions of those of start, start + step, ... (`count` of them) that lie in 0..size-1."""
    first = max(0, -(start // step))
    last = min(count - 1, (size - 1 - start) // step)
    if last < first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last + 1), slice(
        start + first * step, start + last * step + 1, step
    )
