"""Turns images before they are flattened, where they are turned behind that: as heads of detectors and patches of transformers are.

Convolutions keep channels last, so that turned first nothing has to move.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from mrt.graph.patch import Patch
from mrt.graph.values import (
    CHANNELS_LAST,
    first,
    int_attribute,
    ints_attribute,
    nodes,
    producer,
    shape_of,
    sole_user,
)


def turn_flat_images(model: ir.Model) -> int:
    """Transpose(Reshape(x: [N,C,H,W] to [N,C,H*W])) -> Reshape(Transpose(x)); the same of a Concat of such images.

    Applies where nothing else reads what was flattened or joined. Equal.
    """
    count = 0
    for node in nodes(model, "Transpose"):
        images = _flattened(first(node))
        if images is None or ints_attribute(node, "perm") != (0, 2, 1):
            continue
        patch = Patch(node)
        rows = [_rows(patch, image) for image in images]
        joined = (
            rows[0] if len(rows) == 1 else patch.add("Concat", *rows, axis=1)
        )
        patch.finish(joined)
        count += 1
    return count


def _rows(patch: Patch, image: ir.Value) -> ir.Value:
    """Add the pixels of an image as rows [N,H*W,C]."""
    n, channels, height, width = shape_of(image) or ()
    last = patch.add("Transpose", image, perm=CHANNELS_LAST)
    sizes = patch.axes((n, height * width, channels), "shape")
    return patch.add("Reshape", last, sizes, allowzero=0)


def _flattened(value: ir.Value | None) -> Sequence[ir.Value] | None:
    """Return the images whose pixels lie one behind the other along the last axis; None where others read them."""
    if value is None or sole_user(value) is None:
        return None
    joined = producer(value, "Concat")
    parts = [value] if joined is None else list(joined.inputs)
    if joined is not None and int_attribute(joined, "axis", 0) != 2:
        return None
    images = [_image(part) for part in parts]
    known = [image for image in images if image is not None]
    return known if len(known) == len(parts) else None


def _image(flat: ir.Value | None) -> ir.Value | None:
    """Return the image [N,C,H,W] of which this is [N,C,H*W] and that nothing else reads so."""
    node = producer(flat, "Reshape")
    if node is None or flat is None or sole_user(flat) is None:
        return None
    image, sizes = first(node), shape_of(flat)
    shape = shape_of(image)
    if shape is None or len(shape) != 4 or sizes is None:
        return None
    return image if sizes == (*shape[:2], shape[2] * shape[3]) else None
