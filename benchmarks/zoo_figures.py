"""Measures one architecture in float and in integers.

It runs in a process of its own, so that its memory is freed with that:

python -m benchmarks.zoo_figures NAME
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from benchmarks.figures import snr_db
from benchmarks.zoo import Architecture, architectures
from cvm.file import format as cvm_format
from cvm.proof.cost import cost
from cvm.proof.slack import bits, slack, tightest
from cvm.proof.validate import Proven
from cvm.runtime import boundary, native
from cvm.runtime.execution import run
from mrt.calibrate.samples import synthetic_samples
from mrt.calibrate.session import FloatSession
from mrt.config import Config, DataSettings, ModelSettings
from mrt.errors import MrtError
from mrt.pipeline import convert
from mrt.project import load

SEED = 0
SAMPLES = 4  # samples of noise, to calibrate on
TEST_SEED = 1  # the seed of the image on which float and integers are compared
# The most multiply-accumulates of an image that the reference computes too.
REFERENCE_LIMIT = 700_000_000

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass
class Figures:
    """All figures of one architecture; `failure` is the reason why there are no more."""

    name: str
    size: int
    failure: str | None = None
    parameters: int = 0
    float_bytes: int = 0
    program_bytes: int = 0
    float_products: int = 0  # multiply-accumulates
    # Results of operators that compute without sums of products.
    float_others: int = 0
    operators: dict[str, int] = field(default_factory=dict)
    products: int = 0
    element_operations: int = 0
    table_reads: int = 0
    instructions: dict[str, int] = field(default_factory=dict)
    slack: str = "-"
    snr_db: float = 0.0
    same_class: bool = False
    # Whether the reference computed exactly the integers of the engine.
    reference: str = "-"


def measure(item: Architecture) -> Figures:
    """Import, convert and run one architecture with seeded weights."""
    figures = Figures(item.name, item.shapes["data"][2])
    config = Config(
        model=ModelSettings(item.path, shapes=item.shapes, random_weights=SEED),
        calibration_data=DataSettings(samples=SAMPLES),
    )
    try:
        image = next(iter(synthetic_samples(item.shapes, 1, TEST_SEED)))
        expected = _of_float(figures, load(config).model, image)
        proven = convert(
            config, table=None, progress=lambda what, done, total: None
        ).proven
        _of_program(figures, proven)
        _compare(figures, proven, image, expected)
    except MrtError as problem:
        figures.failure = str(problem).splitlines()[-1].strip()
    return figures


def _of_float(figures: Figures, model: ir.Model, image: Arrays) -> Arrays:
    """Count the work of the imported graph, and return its outputs for the image."""
    weights = [
        value.const_value
        for value in model.graph.initializers.values()
        if value.dtype == ir.DataType.FLOAT
    ]
    figures.parameters = sum(
        tensor.size for tensor in weights if tensor is not None
    )
    figures.float_bytes = 4 * figures.parameters
    figures.operators = dict(Counter(node.op_type for node in model.graph))
    for node in model.graph:
        products, others = float_work(node)
        figures.float_products += products
        figures.float_others += others
    return FloatSession(model).run(image)


MOVEMENT = frozenset(
    {
        "Concat",
        "Flatten",
        "Identity",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
        "Pad",
        "Dropout",
    }
)


def float_work(node: ir.Node) -> tuple[int, int]:
    """Return the multiply-accumulates of one operator, and its other computed results."""
    results = sum(math.prod(_shape(value)) for value in node.outputs)
    if node.op_type == "Conv":
        return results * math.prod(_shape(node.inputs[1])[1:]), 0
    if node.op_type in ("Gemm", "MatMul"):
        inputs = _shape(node.inputs[0])
        return results * inputs[
            0 if node.op_type == "Gemm" and _transposed(node) else -1
        ], 0
    return 0, 0 if node.op_type in MOVEMENT else results


def _transposed(node: ir.Node) -> bool:
    attribute = node.attributes.get("transA")
    return attribute is not None and bool(attribute.as_int())


def _shape(value: ir.Value | None) -> tuple[int, ...]:
    assert value is not None and value.shape is not None
    return tuple(int(size) for size in value.shape.numpy())


def _of_program(figures: Figures, proven: Proven) -> None:
    figures.program_bytes = len(cvm_format.encode(proven.program))
    figures.instructions = dict(
        Counter(instruction.name for instruction in proven.program.instructions)
    )
    work = cost(proven).work
    figures.products = work.multiply_accumulates
    figures.table_reads = work.table_reads
    figures.element_operations = work.element_operations
    number = tightest(proven)
    figures.slack = (
        "-" if number is None else bits(slack("i32", proven.intervals[number]))
    )


def _compare(
    figures: Figures, proven: Proven, image: Arrays, expected: Arrays
) -> None:
    integers = boundary.quantize(proven.program, image)
    outputs = run(proven, integers)
    (name,) = expected
    real = boundary.dequantize(proven.program, outputs)[name]
    figures.snr_db = snr_db(
        expected[name].ravel().tolist(), real.ravel().tolist()
    )
    figures.same_class = bool(np.argmax(expected[name]) == np.argmax(real))
    if native.available() and figures.products <= REFERENCE_LIMIT:
        again = run(proven, integers, engine="reference")[name]
        figures.reference = (
            "same" if np.array_equal(again, outputs[name]) else "differs"
        )


def main() -> None:
    """Print the figures as one line of JSON."""
    (name,) = sys.argv[1:]
    (architecture,) = (
        architecture
        for architecture in architectures()
        if architecture.name == name
    )
    print(json.dumps(asdict(measure(architecture))))


if __name__ == "__main__":
    main()
