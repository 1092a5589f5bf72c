"""Runs the node cases of the `onnx` package, from the file to the engine's answer.

The answer is compared with the case's own numbers. A case is one node, its input arrays
and its expected arrays. Operands that must be known at conversion (weights, limits,
axes, shapes) are initializers; all others are inputs of the program.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.case.test_case import TestCase

import cvm
from cvm.program import DTYPES, Program
from cvm.proof.validate import validate
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Samples
from mrt.frontend.onnx import load_onnx
from mrt.quantize import QuantizeOptions, quantize
from mrt.rewrite import rewrite
from mrt.table.table import CalibrationOptions

Arrays = dict[str, np.ndarray]
SCALED = 4  # calibration samples besides the case's own
UNUSED = "unused"  # the input of a program that needs none
OLDEST_OPSET = 7
DOMAINS = ("", "ai.onnx.ml")


@dataclass(frozen=True)
class NodeCase:
    """One node, its inputs and its expected outputs, by name."""

    name: str
    model: onnx.ModelProto
    given: Mapping[str, Any]
    expected: Mapping[str, Any]

    @property
    def node(self) -> onnx.NodeProto:
        return self.model.graph.node[0]

    @property
    def operator(self) -> str:
        """The operator, as `mrt operators` lists it."""
        return (
            f"{self.node.domain}.{self.node.op_type}"
            if self.node.domain
            else self.node.op_type
        )


def cases_in(module: str) -> list[NodeCase]:
    """Return the cases that one module of the package makes, such as `relu`."""
    _collect(module)
    return [
        case
        for case in _cases()
        if case.node.op_type.lower() == module.replace("_", "")
    ]


@cache
def all_cases() -> dict[str, list[NodeCase]]:
    """Return every case of one node that is not for training, by operator.

    It makes them all, which takes ten seconds.
    """
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some arrays are made to overflow
        load_model_tests(kind="node")
    found: dict[str, list[NodeCase]] = {}
    for case in _cases():
        found.setdefault(case.operator, []).append(case)
    return found


def _collect(module: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(f"onnx.backend.test.case.node.{module}")


def _cases() -> Iterator[NodeCase]:
    from onnx.backend.test.case.node import _NodeTestCases as made

    for case in made:
        nodes = case.model.graph.node
        if (
            len(nodes) == 1
            and nodes[0].domain in DOMAINS
            and not case.name.endswith("_expanded")
        ):
            yield _named(case)


def _named(case: TestCase) -> NodeCase:
    assert case.model is not None and case.data_sets is not None
    graph, (given, expected) = case.model.graph, case.data_sets[0]
    inputs = [value.name for value in graph.input]
    outputs = [value.name for value in graph.output]
    return NodeCase(
        case.name,
        case.model,
        {name: _array(item) for name, item in zip(inputs, given, strict=True)},
        {
            name: _array(item)
            for name, item in zip(outputs, expected, strict=True)
        },
    )


def _array(item: Any) -> Any:
    """Convert an array of a type that numpy lacks, which is a protobuf."""
    return (
        numpy_helper.to_array(item)
        if isinstance(item, onnx.TensorProto)
        else item
    )


@dataclass(frozen=True)
class Answer:
    """The engine's results for the case's own inputs, as real numbers, and the expected ones."""

    program: Program
    expected: Mapping[str, np.ndarray]
    found: Mapping[str, np.ndarray]

    def problem(self, decibels: float) -> str | None:
        """Return a description of an error, or None.

        Floats need a signal-to-noise ratio, integers and booleans must be equal.
        """
        for name, expected in self.expected.items():
            found = self.found[name]
            if found.shape != expected.shape:
                return f"{name} has shape {list(found.shape)}, expected {list(expected.shape)}"
            if expected.dtype.kind in "bui":
                if share := float(np.mean(found != expected)):
                    return f"{name}: {share:.0%} of the numbers differ"
            elif (ratio := snr_db(expected, found)) < decibels:
                return f"{name}: {ratio:.1f} dB, expected {decibels}"
        return None


def snr_db(expected: np.ndarray, found: np.ndarray) -> float:
    """Return the signal-to-noise ratio, which is infinite where nothing differs."""
    wanted = expected.astype(np.float64)
    noise = float(((wanted - found) ** 2).sum())
    signal = float((wanted**2).sum())
    return (
        float("inf")
        if noise == 0
        else 10 * float(np.log10(signal / noise))
        if signal
        else float("-inf")
    )


@dataclass(frozen=True)
class Terms:
    """How a case is converted: operands known at conversion, and samples for calibration.

    With `scaled`, samples are also smaller than the case's own. With `at_steps`, the
    greatest number measured is 32767 times a power of two, so that 0.5, 1, 2, .. are
    exact where a function jumps.
    """

    known: tuple[int, ...] = ()
    scaled: bool = True
    at_steps: bool = False
    bits: int = 16


def with_finite(case: NodeCase) -> NodeCase:
    """Return an element-wise case with 0 for each NaN and infinity in its input.

    The outputs expected there are 0 too.
    """
    (name, x), *rest = case.given.items()
    gone = ~np.isfinite(x)
    expected = {
        output: np.where(gone, np.zeros((), y.dtype), y)
        for output, y in case.expected.items()
    }
    return replace(
        case,
        given={name: np.where(gone, np.zeros((), x.dtype), x), **dict(rest)},
        expected=expected,
    )


def answer(case: NodeCase, terms: Terms, folder: Path) -> Answer:
    """Read, rewrite, calibrate, quantize, prove and run a case."""
    operands = dict(enumerate(case.node.input))
    known = {name for place in terms.known if (name := operands.get(place))}
    path = folder / "case.onnx"
    onnx.save(_with_initializers(case, known), path)
    model, _ = load_onnx(path)
    rewrite(model)
    given = {**case.given, UNUSED: np.zeros(1, np.float32)}
    inputs = {
        str(value.name): given[str(value.name)] for value in model.graph.inputs
    }
    samples = calibration_samples(inputs, terms)
    seen = Samples(
        tuple(inputs), len(samples), None, case.name, lambda: iter(samples)
    )
    table = calibrate(
        model,
        seen,
        CalibrationOptions(observer="minmax"),
        model_sha256="0" * 64,
    )
    program = quantize(model, table, QuantizeOptions(8, terms.bits))
    results = cvm.run(validate(program), integers_of(program, inputs))
    return Answer(program, case.expected, reals_of(program, results))


def _with_initializers(case: NodeCase, known: set[str]) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    kept = [value for value in model.graph.input if value.name not in known]
    del model.graph.input[:]
    model.graph.input.extend(
        kept
        or [helper.make_tensor_value_info(UNUSED, onnx.TensorProto.FLOAT, [1])]
    )
    # From version 4 on, initializers need not be inputs too.
    model.ir_version = max(model.ir_version, 4)
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(case.given[name]), name)
        for name in case.given
        if name in known
    )
    if case.node.domain:
        # Every model has to name the default domain's opset.
        model.opset_import.append(helper.make_opsetid("", OLDEST_OPSET))
        return model
    opset = model.opset_import[0]
    if (
        opset.version < OLDEST_OPSET
        and _since(case.node.op_type, OLDEST_OPSET) <= opset.version
    ):
        opset.version = OLDEST_OPSET  # the operator is still the same in it
    return model


def _since(operator: str, opset: int) -> int:
    return int(onnx.defs.get_schema(operator, opset).since_version)


def calibration_samples(
    inputs: Mapping[str, np.ndarray], terms: Terms
) -> list[Arrays]:
    """Return the case's own numbers, and the same numbers in other positions.

    Floats are scaled down as well. All comes from a fixed seed.
    """
    rng = np.random.default_rng(0)
    samples = [
        {name: array.astype(np.float32) for name, array in inputs.items()}
    ]
    for factor in np.linspace(1.0, 0.4, SCALED, dtype=np.float32):
        shuffled = {
            name: rng.permutation(array.ravel()).reshape(array.shape)
            for name, array in inputs.items()
        }
        samples.append({
            name: array.astype(np.float32) * (factor if terms.scaled and array.dtype.kind == "f" else np.float32(1))
            for name, array in shuffled.items()
        })  # fmt: skip
    if terms.at_steps:
        whole = [
            name for name, array in inputs.items() if array.dtype.kind != "f"
        ]
        samples.append(
            {
                n: array if n in whole else _to_a_power_of_two(array)
                for n, array in samples[0].items()
            }
        )
    return samples


def _to_a_power_of_two(array: np.ndarray) -> np.ndarray:
    most = float(np.abs(array).max())
    return array * np.float32(
        32767 * 2.0 ** math.ceil(math.log2(most / 32767)) / most
    )


def integers_of(program: Program, sample: Mapping[str, np.ndarray]) -> Arrays:
    """Convert real inputs to integers by the program's metadata.

    The conversion is written here, so that tests do not rely on the code that they
    test.
    """
    found = {}
    for item in program.inputs:
        meaning = program.metadata.inputs[item.name]
        steps = (
            np.floor(sample[item.name].astype(np.float64) / meaning.scale + 0.5)
            + meaning.zero_point
        )
        found[item.name] = np.clip(steps, item.lo, item.hi).astype(
            DTYPES[item.type.dtype]
        )
    return found


def reals_of(program: Program, results: Mapping[str, np.ndarray]) -> Arrays:
    """Convert the program's integers to real numbers."""
    meanings = program.metadata.outputs
    return {
        n: (v.astype(np.float64) - meanings[n].zero_point) * meanings[n].scale
        for n, v in results.items()
    }
