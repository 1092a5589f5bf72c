"""Runs models of ONNX operators through all stages, and compares them with onnxruntime.

The stages read, rewrite, calibrate, quantize, prove and run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from cvm.program import Program
from cvm.proof.validate import validate
from cvm.reference.interpreter import run as run_program
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import Samples
from mrt.frontend.onnx import load_onnx
from mrt.quantize import QuantizeOptions, quantize
from mrt.rewrite import rewrite
from mrt.table.table import CalibrationOptions
from tests.support.graphs import run

Feeds = dict[str, np.ndarray]


@dataclass(frozen=True)
class Answer:
    """The results of both sides for each sample, by output."""

    program: Program
    floats: list[Feeds]
    integers: list[Feeds]

    def snr_db(self, name: str = "y") -> float:
        """Return the ratio of one output over all samples; infinite where nothing differs."""
        pairs = [
            (f[name].astype(np.float64), i[name])
            for f, i in zip(self.floats, self.integers, strict=True)
        ]
        signal, noise = (sum(float((part**2).sum()) for part in parts) for parts in (
            [f for f, _ in pairs], [f - i for f, i in pairs]))  # fmt: skip
        return (
            float("inf") if noise == 0 else 10 * float(np.log10(signal / noise))
        )

    def agreement(self, name: str = "y") -> float:
        """Return the share of numbers that are equal."""
        same = [
            f[name] == i[name]
            for f, i in zip(self.floats, self.integers, strict=True)
        ]
        return float(np.mean(same))


def model_of(
    nodes: Sequence[onnx.NodeProto],
    feeds: Feeds,
    weights: Mapping[str, Any],
    *,
    outputs: str = "y",
    opset: int = 20,
) -> onnx.ModelProto:
    """Return a checked model whose inputs have the shapes and types of one sample."""
    kind = helper.np_dtype_to_tensor_dtype
    inputs = [
        helper.make_tensor_value_info(n, kind(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    results = [
        helper.make_empty_tensor_value_info(name) for name in outputs.split()
    ]
    constants = [
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in weights.items()
    ]
    graph = helper.make_graph(list(nodes), "test", inputs, results, constants)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9
    )
    return onnx.shape_inference.infer_shapes(
        model, data_prop=True, strict_mode=True
    )


def through(
    proto: onnx.ModelProto,
    samples: Sequence[Feeds],
    folder: Path,
    *,
    bits: int = 16,
) -> Answer:
    """Return the results of both sides for every sample; the same samples calibrate the model."""
    path = folder / "model.onnx"
    onnx.save(proto, path)
    model, _ = load_onnx(path)
    rewrite(model)

    def read() -> Iterator[Feeds]:
        return iter(
            [
                {
                    name: array.astype(np.float32)
                    for name, array in feeds.items()
                }
                for feeds in samples
            ]
        )

    options = CalibrationOptions(observer="minmax")
    seen = Samples(tuple(samples[0]), len(samples), None, "test", read)
    table = calibrate(model, seen, options, model_sha256="0" * 64)
    program = quantize(model, table, QuantizeOptions(8, bits))
    proven = validate(program)
    floats = [run(proto, feeds) for feeds in samples]
    integers = [
        _real(program, run_program(proven, _integers(program, feeds)))
        for feeds in samples
    ]
    for real, whole in zip(floats, integers, strict=True):
        assert {name: array.shape for name, array in real.items()} == {
            n: a.shape for n, a in whole.items()
        }
    return Answer(program, floats, integers)


def _integers(program: Program, feeds: Feeds) -> Feeds:
    """Convert inputs to integers.

    The conversion is written here, so that tests do not rely on the code that they
    test.
    """
    found = {}
    for item in program.inputs:
        meaning = program.metadata.inputs[item.name]
        steps = (
            np.floor(feeds[item.name].astype(np.float64) / meaning.scale + 0.5)
            + meaning.zero_point
        )
        kinds = {
            "bool": np.bool_,
            "i8": np.int8,
            "u8": np.uint8,
            "i16": np.int16,
            "i32": np.int32,
        }
        found[item.name] = np.clip(steps, item.lo, item.hi).astype(
            kinds[item.type.dtype]
        )
    return found


def _real(program: Program, results: Feeds) -> Feeds:
    meanings = program.metadata.outputs
    return {
        n: (v.astype(np.float64) - meanings[n].zero_point) * meanings[n].scale
        for n, v in results.items()
    }
