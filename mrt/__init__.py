"""The converter: a float model becomes a proven program of integers.

    import mrt
    converted = mrt.convert("model.onnx", images, bits=8)
    converted.evaluate(test_images, test_labels)   # accuracy of float and integer
    converted.save("model.cvm")                    # for `cvm.load`, or `cvm run`
    converted.program.run(integers)

`mrt --help` lists the commands for a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from cvm import __version__

if TYPE_CHECKING:
    from mrt.api import Converted
    from mrt.api_files import Data, Model
    from mrt.progress import Progress
    from mrt.table.table import CalibrationTable

__all__ = ["__version__", "convert"]


def convert(
    model: Model | None = None,
    data: Data | None = None,
    *,
    labels: Sequence[int] | None = None,
    table: CalibrationTable | str | PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Converted:
    """Convert a model to a proven integer program, calibrated on samples.

    `model`: a path (.onnx, or an MXNet symbol .json), an `onnx.ModelProto`, an
    `onnx_ir.Model`, a `torch.nn.Module` or a scikit-learn estimator. `data`: a path, an array
    with samples along the first axis, such arrays by input name (the parameters of a torch
    module's `forward`), or a DataFrame of pandas; `labels` their classes.
    Without data or a `table`, the program is calibrated on noise and loses accuracy.

    `options` are those of `mrt convert`, with underscores: `bits=8`, `config="model.toml"`, `weight_bits`,
    `activation_bits`, `refine="none"`, `input_dtype="u8"`, `params`, ...; with values as in a config file:
    `shapes={"x": (1, 3, 32, 32)}`, `outputs=["logits"]`, `mean=[0.5]`. Bits that are not given are chosen: 8, or more
    where the program with 8 is not good on a few of the samples. `progress` is called with (what, done, total).

    What makes the program doubtful, such as samples that are noise or all alike, is a warning of the category
    `mrt.errors.DoubtfulResult`. Raises a subclass of `mrt.errors.MrtError` for what cannot be read or converted.
    """
    from mrt import api
    from mrt.progress import no_progress

    return api.convert(
        model,
        data,
        options,
        labels=labels,
        table=table,
        progress=progress or no_progress,
    )
