"""Makes small ONNX models of any opset, and runs them in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx import helper, numpy_helper
from onnx_ir.passes.common import RemoveUnusedNodesPass

from mrt.graph.infer_shapes import infer_shapes
from mrt.graph.values import int_attribute

onnxruntime.set_default_logger_severity(3)  # errors only

# Rewriting regroups float32 arithmetic: a few roundings, relative to the largest number in the output.
ROUNDING = 2e-6


def node(
    operator: str, inputs: str, outputs: str, **attributes: Any
) -> onnx.NodeProto:
    """Return a node.

    `inputs` and `outputs` are names separated by spaces; `-` means one left out.
    """
    named = [
        ["" if name == "-" else name for name in names.split()]
        for names in (inputs, outputs)
    ]
    return helper.make_node(
        operator,
        named[0],
        named[1],
        name=f"{operator}:{named[1][0]}",
        **attributes,
    )


def build(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    weights: Mapping[str, Any] | None = None,
    *,
    outputs: str = "y",
    opset: int = 20,
    kind: int = onnx.TensorProto.FLOAT,
) -> onnx.ModelProto:
    """Return a checked model.

    Weights keep their numpy type, except Python floats, which become float32.
    """
    arrays = {name: _array(array) for name, array in (weights or {}).items()}
    graph = helper.make_graph(
        list(nodes),
        "test",
        [
            helper.make_tensor_value_info(name, kind, list(shape))
            for name, shape in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs.split()],
        [
            numpy_helper.from_array(array, name)
            for name, array in arrays.items()
        ],
    )
    ir_version = 3 if opset < 9 else 9
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=ir_version,
    )
    if ir_version == 3:  # in which initializers have to be inputs as well
        for name, array in arrays.items():
            dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
            model.graph.input.append(
                helper.make_tensor_value_info(name, dtype, array.shape)
            )
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    for output in inferred.graph.output:
        if not output.type.tensor_type.elem_type:
            output.type.tensor_type.elem_type = kind
    return inferred


def graph_of(*arguments: Any, **options: Any) -> ir.Model:
    """Return the model of `build` as the graph type that passes work on."""
    return ir.from_proto(build(*arguments, **options))


def run(
    model: onnx.ModelProto | ir.Model, feeds: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Compute every output in onnxruntime, without its own optimisation."""
    proto = ir.to_proto(model) if isinstance(model, ir.Model) else model
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_outputs()]
    wanted = {value.name for value in session.get_inputs()}
    return dict(
        zip(
            names,
            session.run(names, {k: v for k, v in feeds.items() if k in wanted}),
            strict=True,
        )
    )


def seeded(
    shapes: Mapping[str, Sequence[int]], seed: int = 0
) -> dict[str, np.ndarray]:
    """Return normal numbers for every input."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def apply_pass(
    one_pass: Callable[[ir.Model], int],
    model: ir.Model,
    tolerance: float = ROUNDING,
) -> int:
    """Run one pass as `rewrite` does, and return the number of changes.

    The model must compute the same as before.
    """
    feeds = seeded(shapes_of(model))
    before = run(model, feeds)
    count = one_pass(model)
    RemoveUnusedNodesPass()(model)
    infer_shapes(model)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    assert_plain(model)
    assert_same(before, run(model, feeds), tolerance)
    return count


def assert_plain(model: ir.Model) -> None:
    """Require 0 for the attributes that give a 0 or an empty list another meaning."""
    for entry in model.graph:
        for name in ("allowzero", "noop_with_empty_axes"):
            assert int_attribute(entry, name, 0) == 0, entry.name


def shapes_of(model: ir.Model) -> dict[str, tuple[int, ...]]:
    return {
        str(value.name): tuple(int(str(size)) for size in value.shape or ())
        for value in model.graph.inputs
    }


def operators_of(model: ir.Model) -> list[str]:
    return [entry.op_type for entry in model.graph]


def constant_named(model: ir.Model, name: str) -> np.ndarray:
    value = model.graph.initializers[name].const_value
    assert value is not None
    return value.numpy()


def assert_same(
    before: Mapping[str, np.ndarray],
    after: Mapping[str, np.ndarray],
    tolerance: float = ROUNDING,
) -> None:
    """Require the same names in the same order, the same shapes, and nearly the same numbers.

    They may differ by `tolerance` of the largest.
    """
    assert list(before) == list(after)
    for name, expected in before.items():
        assert after[name].shape == expected.shape
        assert np.abs(after[name] - expected).max() <= tolerance * max(
            1.0, float(np.abs(expected).max())
        ), name


def _array(value: Any) -> np.ndarray:
    array = np.asarray(value)
    return (
        array.astype(np.float32)
        if not isinstance(value, np.ndarray) and array.dtype == np.float64
        else array
    )
