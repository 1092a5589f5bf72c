"""The differences that stay, each with its reason: documented refusals of the front end, and bugs of MXNet."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from mrt.frontend.mxnet.operators.aliases import known_name
from tests.mxnet_judge.case import Case

REFUSES = ("mrt refuses",)
ACCEPTS = ("mxnet refuses",)
DIFFERS = ("differ",)


@dataclass(frozen=True)
class Known:
    """Holds where a case of these outcomes uses one of `operators`, by its first name, and `detail` was said."""

    why: str
    operators: tuple[str, ...]
    outcomes: tuple[str, ...]
    detail: str = ""
    where: Callable[[dict[str, str]], bool] = lambda _: True

    def fits(self, case: Case, detail: str) -> bool:
        """Whether a node of the case has one of the operators, with attributes for which this is known."""
        if not re.search(self.detail, detail):
            return False
        rows = [
            row
            for row in case.symbol["nodes"]
            if known_name(row["op"]) in self.operators
        ]
        return any(self.where(row["attrs"]) for row in rows)


KNOWN: tuple[Known, ...] = (
    Known(
        "the axis depends on how MXNet was built (with or without oneDNN), so it is refused",
        ("SoftmaxOutput", "Softmax"), REFUSES, "depends on how MXNet was built",
    ),
    Known(
        "a window without any element of the input: MXNet's value for it differs from version to version",
        ("Pooling", "Pooling_v1"), REFUSES, "a window lies wholly in the padding",
    ),
    Known(
        "MXNet's own code, asked where there is a target_shape, spreads a dilated kernel as if it were not; oneDNN does not",
        ("Deconvolution",), DIFFERS, "", lambda attributes: "target_shape" in attributes and "2" in attributes.get("dilate", ""),
    ),
    Known(
        "MXNet reshapes to a shape of fewer elements without a word, and drops the rest",
        ("Reshape", "reshape"), REFUSES, "cannot reshape",
    ),
    Known(
        "MXNet's symbols cannot infer its dtype from its inputs; in a file it can only be what it says",
        ("_copyto", "_zeros_without_dtype"), ACCEPTS, "InferType",
    ),
    Known(
        "only MXNet for graphics cards has it; it means what the operator without CuDNN in its name does",
        ("CuDNNBatchNorm",), ACCEPTS, "is not registered",
    ),
    Known(
        "MXNet takes an axis from the back elsewhere, but not here",
        ("reverse", "flip", "broadcast_axis", "broadcast_axes", "cumsum", "_np_cumsum"), ACCEPTS, "index = -",
    ),
    Known(
        "bounds in the wrong order are taken for a mistake; numpy gives them a meaning, and MXNet elsewhere refuses them",
        ("clip",), REFUSES, "is above a_max",
    ),
    Known(
        "MXNet's code for it is compiled for a few dimensions only",
        ("tile",), ACCEPTS, "Too many reduction axes",
    ),
    Known(
        "MXNet dies of an inferred dimension in this form of versions before 0.9",
        ("Reshape", "reshape"), ACCEPTS, "died or hung", lambda attributes: "target_shape" in attributes,
    ),
    Known(
        "MXNet's own code, asked where there is a target_shape, cuts an odd number of elements off at a stride of 2 or more only",
        ("Deconvolution",), ACCEPTS, "must be samller than stride",
    ),
    Known(
        "MXNet has no dilated transposed convolution of three axes",
        ("Deconvolution",), ACCEPTS, "[Dd]ilate is not supported in 3d",
    ),
    Known(
        "MXNet wants an attribute to be written that changes nothing at inference",
        ("_contrib_SparseEmbedding",), ACCEPTS, "deterministic",
    ),
    Known(
        "the same of the name that devices share",
        ("_contrib_SyncBatchNorm",), ACCEPTS, "Required parameter key",
    ),
    Known(
        "MXNet has it for oneDNN only, and oneDNN for one axis and some statistics only",
        ("_contrib_BatchNormWithReLU",), ACCEPTS, "only supports MKL-DNN",
    ),
    Known(
        "to MXNet a result without dimensions is one of unknown shape, which nothing can use",
        ("_split_v2",), REFUSES, "leaves no dimension",
    ),
    Known(
        "the parts that are left over have no element, which no ONNX graph here may have",
        ("_split_v2",), REFUSES, "sections=[0-9]+ on an axis of size",
    ),
    Known(
        "known to MXNet for one axis, where it then refuses; it only passes where a global pool ignores it",
        ("Pooling",), REFUSES, "pooling_convention='same'",
    ),
    Known(
        "an average over a window wholly behind the input: MXNet's own code divides 0 by 0, oneDNN says 0",
        ("Pooling",), DIFFERS, "mxnet nan", lambda attributes: attributes.get("pool_type") == "avg",
    ),
    Known(
        "roots of another order than 1 and 2 are not among ONNX's operators",
        ("Pooling",), REFUSES, "p_value=3",
    ),
    Known(
        "its padding is zeros to a maximum too, which is the usual one after a relu only",
        ("Pooling_v1",), REFUSES, "a maximum over zeros outside",
    ),
    Known(
        "bounds of the state inside the recurrence are not among those of ONNX's LSTM",
        ("RNN",), REFUSES, "lstm_state_clip_min",
    ),
)  # fmt: skip
