"""Small canonical float models for tests, with float and integer answers.

onnxruntime computes the float answers, the reference the integer answers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx import helper, numpy_helper

from cvm.program import DTYPES, Program
from cvm.proof.validate import validate
from cvm.reference.interpreter import run
from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.quantize import QuantizeOptions, quantize
from mrt.table.table import CalibrationOptions, CalibrationTable


class FloatModel:
    """Nodes added one by one; weights are given as arrays in place of input names."""

    def __init__(self, **inputs: Sequence[int]) -> None:
        self.inputs = {name: tuple(shape) for name, shape in inputs.items()}
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def add(
        self, operator: str, *inputs: Any, name: str = "", **attributes: Any
    ) -> str:
        name = name or f"v{len(self._nodes)}"
        self._nodes.append(
            helper.make_node(
                operator,
                [self._name(item) for item in inputs],
                [name],
                name,
                **attributes,
            )
        )
        return name

    def conv(
        self,
        x: str,
        weights: Any,
        bias: Any,
        *,
        pads: Sequence[int] = (0, 0, 0, 0),
        **attributes: Any,
    ) -> str:
        defaults = {"strides": [1, 1], "dilations": [1, 1], "group": 1}
        return self.add(
            "Conv",
            x,
            f32(weights),
            f32(bias),
            pads=list(pads),
            **(defaults | attributes),
        )

    def gemm(self, x: str, weights: Any, bias: Any) -> str:
        return self.add(
            "Gemm",
            x,
            f32(weights),
            f32(bias),
            transA=0,
            transB=1,
            alpha=1.0,
            beta=1.0,
        )

    def proto(self, *outputs: str) -> onnx.ModelProto:
        declared = [
            helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s)
            for n, s in self.inputs.items()
        ]
        results = [
            helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None)
            for n in outputs
        ]
        graph = helper.make_graph(
            self._nodes, "test", declared, results, self._weights
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
        )
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)

    def _name(self, item: Any) -> str:
        if isinstance(item, str):
            return item
        self._weights.append(
            numpy_helper.from_array(np.asarray(item), f"c{len(self._weights)}")
        )
        return self._weights[-1].name


def f32(values: Any) -> np.ndarray:
    return np.asarray(values, np.float32)


def calibrated(
    proto: onnx.ModelProto,
    inputs: Mapping[str, tuple[int, ...]],
    count: int = 20,
) -> tuple[ir.Model, CalibrationTable]:
    model = ir.from_proto(proto)
    samples = synthetic_samples(inputs, count, 0)
    return model, calibrate(
        model, samples, CalibrationOptions(), model_sha256="0" * 64
    )


def convert(
    model: FloatModel, *outputs: str, options: QuantizeOptions | None = None
) -> Program:
    graph, table = calibrated(model.proto(*outputs), model.inputs)
    return quantize(graph, table, options or QuantizeOptions())


def run_real(
    program: Program, sample: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Run a program on real inputs, and return real outputs.

    The conversion is written here, so that tests do not rely on the code that they
    test.
    """
    integers = {}
    for item in program.inputs:
        meaning = program.metadata.inputs[item.name]
        steps = (
            np.floor(sample[item.name].astype(np.float64) / meaning.scale + 0.5)
            + meaning.zero_point
        )
        integers[item.name] = np.clip(steps, item.lo, item.hi).astype(
            DTYPES[item.type.dtype]
        )
    results = run(validate(program), integers)
    meanings = program.metadata.outputs
    return {
        n: (v.astype(np.float64) - meanings[n].zero_point) * meanings[n].scale
        for n, v in results.items()
    }


def snr_db(
    model: FloatModel, *outputs: str, options: QuantizeOptions | None = None
) -> dict[str, float]:
    """Return the signal-to-noise ratio of each output over 20 seeded samples."""
    proto = model.proto(*outputs)
    program = convert(model, *outputs, options=options)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    signal = dict.fromkeys(outputs, 0.0)
    noise = dict.fromkeys(outputs, 1e-300)
    for sample in synthetic_samples(model.inputs, 20, 0):
        floats = dict(
            zip(outputs, session.run(list(outputs), dict(sample)), strict=True)
        )
        reals = run_real(program, sample)
        for name in outputs:
            assert reals[name].shape == floats[name].shape
            signal[name] += float((floats[name].astype(np.float64) ** 2).sum())
            noise[name] += float(((floats[name] - reals[name]) ** 2).sum())
    return {name: 10 * np.log10(signal[name] / noise[name]) for name in outputs}
