"""The node cases of the `onnx` package, each taken from its file to the engine's answer and held against its own numbers.

A case is one node, the arrays it is given and those it must give. What operators need to know at conversion (weights,
limits, axes, shapes) is given as initializers; everything else is an input of the program.
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
    """One node, what it is given and what it must give, by name."""

    name: str
    model: onnx.ModelProto
    given: Mapping[str, Any]
    expected: Mapping[str, Any]

    @property
    def node(self) -> onnx.NodeProto:
        return self.model.graph.node[0]

    @property
    def operator(self) -> str:
        """As `mrt operators` lists it."""
        return (
            f"{self.node.domain}.{self.node.op_type}"
            if self.node.domain
            else self.node.op_type
        )


def cases_in(module: str) -> list[NodeCase]:
    """The cases that one module of the package makes, such as `relu`."""
    _collect(module)
    return [
        case
        for case in _cases()
        if case.node.op_type.lower() == module.replace("_", "")
    ]


@cache
def all_cases() -> dict[str, list[NodeCase]]:
    """By operator, every case of one node that is not for training. Makes them all, which takes ten seconds."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # arrays made to overflow
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
    inputs, outputs = (
        [value.name for value in graph.input],
        [value.name for value in graph.output],
    )
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
    """Types that numpy lacks come as protobufs."""
    return (
        numpy_helper.to_array(item)
        if isinstance(item, onnx.TensorProto)
        else item
    )


@dataclass(frozen=True)
class Answer:
    """What the engine gives for the case's own inputs, as real numbers, beside what the case expects."""

    program: Program
    expected: Mapping[str, np.ndarray]
    found: Mapping[str, np.ndarray]

    def trouble(self, decibels: float) -> str | None:
        """What is wrong: floats are held to a signal-to-noise ratio, integers and truths to equality."""
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
    """Infinite where nothing differs."""
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
    """How a case is converted: places of the operands known at conversion, and what it is calibrated on.

    `scaled` samples are also smaller than the case's own; `at_steps`, the greatest number seen is 32767 times a power of
    two, so that 0.5, 1, 2, .. are no roundings away from where a function jumps.
    """

    known: tuple[int, ...] = ()
    scaled: bool = True
    at_steps: bool = False
    bits: int = 16


def with_finite(case: NodeCase) -> NodeCase:
    """An element-wise case with 0 for each NaN and infinity that it is given, and for what it expects there."""
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
    """Read, rewrite, calibrate, quantise, prove, run."""
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
    model.ir_version = max(
        model.ir_version, 4
    )  # since when initializers need not be inputs too
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(case.given[name]), name)
        for name in case.given
        if name in known
    )
    if case.node.domain:
        model.opset_import.append(
            helper.make_opsetid("", OLDEST_OPSET)
        )  # every model has to name one
        return model
    opset = model.opset_import[0]
    if (
        opset.version < OLDEST_OPSET
        and _since(case.node.op_type, OLDEST_OPSET) <= opset.version
    ):
        opset.version = OLDEST_OPSET  # in which the operator is still the same
    return model


def _since(operator: str, opset: int) -> int:
    return int(onnx.defs.get_schema(operator, opset).since_version)


def calibration_samples(
    inputs: Mapping[str, np.ndarray], terms: Terms
) -> list[Arrays]:
    """The case's own numbers, and the same in other places, floats scaled down besides, from a fixed seed."""
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
    """Real inputs as the program's metadata says, written out here so that tests do not lean on the code they judge."""
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
    """What the program's integers stand for."""
    meanings = program.metadata.outputs
    return {
        n: (v.astype(np.float64) - meanings[n].zero_point) * meanings[n].scale
        for n, v in results.items()
    }
