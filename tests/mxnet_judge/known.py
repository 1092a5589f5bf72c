"""The differences that stay, each with its reason: documented refusals of the front end, and bugs of MXNet."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.mxnet_judge.case import Case

REFUSES = ("mrt refuses",)
ACCEPTS = ("mxnet refuses",)
DIFFERS = ("differ",)


@dataclass(frozen=True)
class Known:
    """Holds for cases of these outcomes that use one of `operators`, where `detail` is found in what was said."""

    why: str
    operators: tuple[str, ...]
    outcomes: tuple[str, ...]
    detail: str = ""
    where: Callable[[dict[str, str]], bool] = lambda _: True

    def fits(self, case: Case, detail: str) -> bool:
        """Whether a node of the case has one of the operators, with attributes for which this is known."""
        if not re.search(self.detail, detail):
            return False
        rows = [row for row in case.symbol["nodes"] if row["op"] in self.operators]
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
        "MXNet reshapes to a shape of fewer elements without a word, and drops the rest",
        ("Reshape", "reshape"), REFUSES, "cannot reshape",
    ),
    Known(
        "MXNet's symbols cannot infer its dtype from its inputs; in a file it can only be what it says",
        ("_copyto", "_zeros_without_dtype"), ACCEPTS, "InferType",
    ),
    Known(
        "MXNet wants an attribute to be written that changes nothing at inference",
        ("_contrib_SparseEmbedding",), ACCEPTS, "deterministic",
    ),
)  # fmt: skip
