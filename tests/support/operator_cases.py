"""Small ONNX models of one operator each that the ONNX front end reads.

There is one for each form that an operator has had since opset 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from tests.support.graphs import build, node

_RNG = np.random.default_rng(7)


def _normal(*shape: int) -> np.ndarray:
    return _RNG.normal(size=shape).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """A model of one or a few nodes."""

    name: str
    opset: int
    nodes: Sequence[onnx.NodeProto]
    shape: tuple[int, ...] = (2, 3, 7, 6)
    weights: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    outputs: str = "y"
    positive: bool = False

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        return {"x": self.shape, **self.others}

    def model(self) -> onnx.ModelProto:
        return build(
            self.nodes,
            self.inputs,
            self.weights,
            outputs=self.outputs,
            opset=self.opset,
        )

    def feeds(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(1)
        arrays = {
            name: rng.normal(size=shape).astype(np.float32)
            for name, shape in self.inputs.items()
        }
        return (
            {
                name: np.abs(array) + np.float32(0.1)
                for name, array in arrays.items()
            }
            if self.positive
            else arrays
        )


def _one(
    name: str, operator: str, opset: int = 20, operands: str = "", **rest: Any
) -> Case:
    known = {
        key: rest.pop(key)
        for key in ("shape", "weights", "others", "outputs", "positive")
        if key in rest
    }
    inputs = f"x {operands}"
    return Case(
        name,
        opset,
        [node(operator, inputs, known.get("outputs", "y"), **rest)],
        **known,
    )


_BN = {
    "g": _normal(3),
    "b": _normal(3),
    "m": _normal(3),
    "v": np.abs(_normal(3)) + np.float32(0.5),
}
_W = _normal(4, 3, 3, 3)
_PADS = [0, 0, 1, 2, 0, 0, 0, 3]
_UNARY = [
    "Abs", "Ceil", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "Identity", "LeakyRelu", "Neg", "Relu", "Selu", "Sigmoid",
    "Sign", "Softplus", "Softsign", "Tanh", "Celu", "HardSwish", "Mish", "Gelu",
    "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh", "Round", "Shrink", "ThresholdedRelu", "Swish",
]  # fmt: skip
_SINCE = {
    "Erf": 9,
    "Sign": 9,
    "Celu": 12,
    "HardSwish": 14,
    "Mish": 18,
    "Gelu": 20,
    "Sinh": 9,
    "Cosh": 9,
    "Asinh": 9,
    "Round": 11,
    "Shrink": 9,
    "ThresholdedRelu": 10,
    "Swish": 24,
}


CASES: list[Case] = [
    *(_one(name.lower(), name, _SINCE.get(name, 7)) for name in _UNARY),
    *(_one(name.lower(), name, 7, positive=True) for name in ("Log", "Sqrt", "Reciprocal")),
    _one("gelu by tanh", "Gelu", approximate="tanh"),
    _one("hard sigmoid by its own numbers", "HardSigmoid", 7, alpha=0.3, beta=0.4),
    # Sums of two operands and more.
    *(_one(f"{name.lower()} of two", name, 7, "z", others={"z": (2, 3, 7, 6)}) for name in ("Add", "Sub", "Mul", "Sum")),
    *(_one(f"{name.lower()} of three", name, 8, "z w", others={"z": (2, 3, 7, 6), "w": (3, 1, 6)})
      for name in ("Sum", "Mean", "Max", "Min")),
    _one("max of one", "Max", 8),
    _one("div of two", "Div", 7, "z", others={"z": (2, 3, 7, 6)}, positive=True),
    _one("div by a scalar", "Div", 7, "k", weights={"k": 3.0}),
    _one("div by a channel's number", "Div", 7, "k", weights={"k": [[[3.0]], [[-2.0]], [[0.7]]]}),
    Case("scalar over x", 7, [node("Div", "k x", "y")], weights={"k": 3.0}, positive=True),
    Case("tensor over x", 7, [node("Div", "k x", "y")], weights={"k": _normal(6)}, positive=True),
    Case("scalar minus x", 7, [node("Sub", "k x", "y")], weights={"k": 3.0}),
    Case("scalar times x", 7, [node("Mul", "k x", "y")], weights={"k": 3.0}),
    _one("x minus a vector", "Sub", 7, "k", weights={"k": _normal(6)}),
    _one("square", "Pow", 7, "k", weights={"k": 2.0}),
    _one("prelu", "PRelu", 7, "k", weights={"k": _normal(3, 1, 1)}),
    _one("leaky relu by its own slope", "LeakyRelu", 7, alpha=0.3),
    *(Case(f"{name.lower()} of what it is defined on", 9, [node("HardSigmoid", "x", "h"), node(name, "h", "y")])
      for name in ("Asin", "Acos")),
    Case("acosh of what it is defined on", 9, [node("Add", "x k", "h"), node("Acosh", "h", "y")], weights={"k": 1.0},
         positive=True),
    Case("atanh of what it is defined on", 9, [node("Tanh", "x", "h"), node("Mul", "h k", "m"), node("Atanh", "m", "y")],
         weights={"k": 0.9}),
    *(_one(f"power {k}", "Pow", 7, "k", weights={"k": k}, positive=True) for k in (0.5, -0.5, -1.0, 1.0, 0.3)),
    _one("shrink by its own numbers", "Shrink", 9, lambd=0.3, bias=0.2),
    _one("thresholded relu by its own number", "ThresholdedRelu", 10, alpha=0.3),
    _one("prelu by one number", "PRelu", 7, "k", weights={"k": [0.2]}),
    _one("div of a lower rank", "Div", 7, "z", others={"z": (7, 1)}, positive=True),
    _one("sum of six dimensions", "Add", 7, "z", shape=(2, 1, 2, 3, 1, 2), others={"z": (2, 2, 1, 2, 1)}),
    # limits
    _one("clip by attributes", "Clip", 7, min=0.0, max=0.5),
    _one("clip by one attribute", "Clip", 7, min=0.0),
    _one("clip without limits", "Clip", 7),
    _one("clip by operands", "Clip", 13, "k l", weights={"k": -0.2, "l": 0.5}),
    _one("clip by an upper limit", "Clip", 13, "- l", weights={"l": 0.5}),
    _one("clip to infinity", "Clip", 13, "k l", weights={"k": 0.0, "l": float("inf")}),
    # normalisation
    _one("batch norm", "BatchNormalization", 9, "g b m v", weights=_BN, epsilon=1e-3),
    _one("batch norm of opset 7", "BatchNormalization", 7, "g b m v", weights=_BN, momentum=0.8),
    _one("batch norm of opset 15", "BatchNormalization", 15, "g b m v", weights=_BN, training_mode=0),
    _one("batch norm of rank 2", "BatchNormalization", 9, "g b m v", weights=_BN, shape=(2, 3)),
    _one("batch norm of rank 3", "BatchNormalization", 9, "g b m v", weights=_BN, shape=(2, 3, 5)),
    *(_one(f"layer norm from axis {axis}", "LayerNormalization", 17, "g b", axis=axis, epsilon=1e-3,
           weights={"g": _normal(7, 6) if axis == 2 else _normal(6), "b": _normal(6)}) for axis in (2, -1, 3)),
    _one("layer norm without a bias", "LayerNormalization", 17, "g", weights={"g": _normal(6)}),
    _one("layer norm by a computed scale", "LayerNormalization", 17, "g", others={"g": (6,)}),
    _one("instance norm", "InstanceNormalization", 7, "g b", weights={"g": _normal(3), "b": _normal(3)}),
    _one("instance norm of rank 3", "InstanceNormalization", 7, "g b", weights={"g": _normal(3), "b": _normal(3)},
         shape=(2, 3, 5), epsilon=1e-2),
    _one("instance norm by computed numbers", "InstanceNormalization", 7, "g b", others={"g": (3,), "b": (3,)}),
    _one("group norm", "GroupNormalization", 21, "g b", num_groups=2, shape=(2, 6, 4, 5),
         weights={"g": _normal(6), "b": _normal(6)}),
    Case("group norm of opset 17, as PyTorch writes it", 17, [
        node("Reshape", "x groups", "r"), node("InstanceNormalization", "r g b", "n"), node("Shape", "x", "s"),
        node("Reshape", "n s", "m"), node("Mul", "m k", "w"), node("Add", "w c", "y"),
    ], (2, 6, 4, 5), {"groups": np.array([0, 2, -1]), "g": [1.0, 1.0], "b": [0.0, 0.0], "k": _normal(6, 1, 1),
                      "c": _normal(6, 1, 1)}),
    _one("rms norm", "RMSNormalization", 23, "g", weights={"g": _normal(6)}, epsilon=1e-4),
    *(_one(f"rms norm from axis {axis}", "RMSNormalization", 23, "g", weights={"g": _normal(3, 7, 6)}, axis=axis)
      for axis in (1, -3)),
    _one("layer norm with its mean and deviation", "LayerNormalization", 17, "g", weights={"g": _normal(6)},
         outputs="y mean deviation"),
    *(_one(f"norm {p} along axis {axis}", "LpNormalization", 7, p=p, axis=axis) for p in (1, 2) for axis in (1, -1)),
    _one("mean variance normalisation", "MeanVarianceNormalization", 9),
    _one("mean variance normalisation of channels", "MeanVarianceNormalization", 13, axes=[1]),
    _one("local response", "LRN", 7, size=3, alpha=0.3, beta=0.6, bias=1.5),
    _one("local response by default", "LRN", 13, size=5),
    # softmax before and after opset 13
    *(_one(f"{name.lower()} of opset {opset}, axis {axis}", name, opset, axis=axis)
      for name in ("Softmax", "LogSoftmax") for opset, axis in ((7, 1), (11, -1), (12, 2), (13, 1), (13, -1), (13, 0))),
    _one("softmax of opset 7 by default", "Softmax", 7),
    _one("softmax of opset 13 by default", "Softmax", 13),
    # convolutions
    _one("conv", "Conv", 7, "w", weights={"w": _W}),
    _one("conv with all attributes", "Conv", 7, "w b", weights={"w": _normal(6, 1, 3, 2), "b": _normal(6)},
         strides=[2, 1], dilations=[1, 2], pads=[1, 0, 2, 1], group=3, kernel_shape=[3, 2]),
    *(_one(f"conv {mode.lower()}", "Conv", 11, "w", weights={"w": _normal(4, 3, 3, 2)}, auto_pad=mode, strides=[2, 2])
      for mode in ("SAME_UPPER", "SAME_LOWER", "VALID")),
    _one("conv of rank 3", "Conv", 11, "w b", weights={"w": _normal(4, 3, 3), "b": _normal(4)}, shape=(2, 3, 9),
         strides=[2], pads=[1, 2]),
    _one("transposed conv", "ConvTranspose", 7, "w", weights={"w": _normal(3, 4, 3, 3)}),
    _one("transposed conv with all attributes", "ConvTranspose", 11, "w b",
         weights={"w": _normal(3, 2, 3, 3), "b": _normal(6)}, strides=[2, 3], pads=[1, 0, 0, 1], group=3,
         output_padding=[1, 2]),
    *(_one(f"transposed conv {mode.lower()}", "ConvTranspose", 11, "w", weights={"w": _normal(3, 4, 3, 4)},
           auto_pad=mode, strides=[2, 2]) for mode in ("SAME_UPPER", "SAME_LOWER", "VALID")),
    _one("transposed conv with a shape", "ConvTranspose", 11, "w", weights={"w": _normal(3, 4, 3, 3)}, strides=[2, 2],
         output_shape=[14, 12]),
    _one("transposed conv with a greater shape", "ConvTranspose", 11, "w", weights={"w": _normal(3, 4, 3, 3)},
         strides=[2, 2], output_shape=[16, 14]),
    _one("dilated transposed conv", "ConvTranspose", 11, "w", weights={"w": _normal(3, 4, 3, 2)}, dilations=[2, 3],
         strides=[1, 2], pads=[1, 0, 0, 1]),
    *(_one(f"columns to an image, {name}", "Col2Im", 18, "s b", shape=(2, 12, columns), **attributes,
           weights={"s": np.array([7, 6]), "b": np.array([2, 3])})
      for name, columns, attributes in (("overlapping", 24, {}), ("apart", 6, {"strides": [2, 3]}),
                                        ("dilated and padded", 18, {"dilations": [2, 2], "pads": [1, 0, 0, 1]}))),
    *(Case(f"max pool of {kind} bytes", 12, [node("Cast", "x", "b", to=to), node("MaxPool", "b", "m", kernel_shape=[2, 2]),
                                             node("Cast", "m", "y", to=1)]) for kind, to in (("signed", 3),)),
    _one("transposed conv of rank 3", "ConvTranspose", 11, "w", weights={"w": _normal(3, 4, 3)}, shape=(2, 3, 9),
         strides=[2]),
    # pools
    _one("max pool", "MaxPool", 7, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]),
    _one("max pool without strides", "MaxPool", 7, kernel_shape=[3, 2]),
    *(_one(f"max pool rounding up {h}x{w}", "MaxPool", 12, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1,
           shape=(1, 2, h, w)) for h, w in ((7, 6), (8, 9), (4, 5))),
    *(_one(f"{name.lower()} rounding up where auto_pad says the size", name, 19, kernel_shape=[3, 2], strides=[2, 2],
           auto_pad="SAME_UPPER", ceil_mode=1, shape=(1, 2, 8, 6)) for name in ("MaxPool", "AveragePool", "LpPool")),
    *(_one(f"dilated {name.lower()} rounding up past the end", name, 19, kernel_shape=[2, 2], strides=[3, 3],
           pads=[1, 1, 1, 1], dilations=[1, 2], ceil_mode=1, shape=(1, 2, 4, 4)) for name in ("MaxPool", "LpPool")),
    _one("max pool rounding up past the end", "MaxPool", 12, kernel_shape=[2, 2], strides=[3, 3], pads=[1, 1, 1, 1],
         ceil_mode=1, shape=(1, 2, 4, 4)),
    *(_one(f"{name.lower()} {mode.lower()}", name, 11, kernel_shape=[3, 2], strides=[2, 2], auto_pad=mode)
      for name in ("MaxPool", "AveragePool") for mode in ("SAME_UPPER", "SAME_LOWER", "VALID")),
    _one("max pool of rank 3", "MaxPool", 11, kernel_shape=[3], strides=[2], shape=(2, 3, 9)),
    _one("average pool of rank 3", "AveragePool", 11, kernel_shape=[3], strides=[2], shape=(2, 3, 9)),
    _one("padded average pool of rank 3", "AveragePool", 11, kernel_shape=[3], pads=[1, 1], shape=(2, 3, 9)),
    *(_one(f"average pool pads {pads}, counted {counted}, up {up}", "AveragePool", 19, kernel_shape=[3, 3],
           strides=[2, 2], pads=[pads] * 4, count_include_pad=counted, ceil_mode=up, shape=(1, 2, 8, 7))
      for pads in (0, 1) for counted in (0, 1) for up in (0, 1)),
    _one("global average pool", "GlobalAveragePool", 7),
    _one("global max pool", "GlobalMaxPool", 7),
    _one("global average pool of rank 3", "GlobalAveragePool", 7, shape=(2, 3, 5)),
    # products
    _one("gemm", "Gemm", 7, "w c", weights={"w": _normal(5, 4), "c": _normal(4)}, shape=(3, 5)),
    _one("gemm with all attributes", "Gemm", 7, "w c", weights={"w": _normal(4, 5), "c": _normal(1, 4)}, shape=(5, 3),
         alpha=0.5, beta=2.0, transA=1, transB=1),
    _one("gemm without c", "Gemm", 11, "w", weights={"w": _normal(5, 4)}, shape=(3, 5)),
    _one("gemm with a scalar c", "Gemm", 11, "w c", weights={"w": _normal(5, 4), "c": 0.7}, shape=(3, 5)),
    _one("gemm with a c for each row", "Gemm", 11, "w c", weights={"w": _normal(5, 4), "c": _normal(3, 1)},
         shape=(3, 5), beta=0.5),
    _one("gemm of computed operands", "Gemm", 11, "z c", weights={"c": _normal(4)}, others={"z": (4, 5)}, shape=(3, 5),
         transB=1, alpha=0.5),
    _one("gemm with a computed c", "Gemm", 11, "w c", weights={"w": _normal(5, 4)}, others={"c": (3, 4)}, shape=(3, 5),
         beta=0.5),
    _one("matmul", "MatMul", 7, "w", weights={"w": _normal(5, 4)}, shape=(3, 5)),
    _one("matmul of rank 3", "MatMul", 7, "w", weights={"w": _normal(5, 4)}, shape=(2, 3, 5)),
    _one("matmul of rank 1", "MatMul", 7, "w", weights={"w": _normal(5, 4)}, shape=(5,)),
    _one("matmul by a vector", "MatMul", 7, "w", weights={"w": _normal(5)}, shape=(3, 5)),
    _one("matmul by matrices", "MatMul", 7, "w", weights={"w": _normal(2, 5, 4)}, shape=(2, 3, 5)),
    _one("matmul of two", "MatMul", 7, "z", others={"z": (2, 5, 4)}, shape=(2, 3, 5)),
    Case("matmul from the left", 7, [node("MatMul", "w x", "y")], shape=(5, 3), weights={"w": _normal(4, 5)}),
    Case("matmul and add", 7, [node("MatMul", "x w", "p"), node("Add", "b p", "y")], shape=(2, 3, 5),
         weights={"w": _normal(5, 4), "b": _normal(4)}),
    # reductions
    *(_one(f"{name.lower()} of opset {opset}", name, opset, axes=[1, -1] if opset >= 11 else [1, 3], keepdims=keep)
      for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare")
      for opset, keep in ((7, 1), (11, 0))),
    *(_one(f"{name.lower()} of opset {opset}", name, opset, axes=axes, keepdims=keep, positive=True, shape=(2, 3, 4, 5))
      for name in ("ReduceLogSum", "ReduceLogSumExp", "ReduceProd")
      for opset, axes, keep in ((7, [1, 3], 1), (11, [-1], 0), (13, [0, 2], 0))),
    _one("reduce mean of opset 18", "ReduceMean", 18, "a", weights={"a": np.array([-1])}),
    _one("reduce sum of opset 13", "ReduceSum", 13, "a", weights={"a": np.array([3, 2])}, keepdims=0),
    _one("reduce max over all", "ReduceMax", 7),
    _one("reduce sum over nothing", "ReduceSum", 13, noop_with_empty_axes=1),
    # movement
    _one("flatten", "Flatten", 7),
    _one("flatten at the last axis", "Flatten", 11, axis=-1),
    _one("reshape", "Reshape", 7, "s", weights={"s": np.array([0, -1, 2])}),
    _one("squeeze", "Squeeze", 7, axes=[0, 2], shape=(1, 3, 1, 4)),
    _one("squeeze by an operand", "Squeeze", 13, "a", weights={"a": np.array([-2])}, shape=(1, 3, 1, 4)),
    _one("squeeze all", "Squeeze", 13, shape=(1, 3, 1, 4)),
    _one("unsqueeze", "Unsqueeze", 7, axes=[0, 3], shape=(3, 4)),
    _one("unsqueeze by an operand", "Unsqueeze", 13, "a", weights={"a": np.array([-1])}, shape=(3, 4)),
    _one("transpose", "Transpose", 7, perm=[0, 2, 3, 1]),
    _one("transpose by default", "Transpose", 7),
    _one("concat", "Concat", 7, "z", others={"z": (2, 4, 7, 6)}, axis=1),
    _one("concat from behind", "Concat", 11, "z", others={"z": (2, 3, 7, 4)}, axis=-1),
    _one("concat of one", "Concat", 11, axis=1),
    _one("slice", "Slice", 7, starts=[1, -3], ends=[9, -1], axes=[1, 3]),
    _one("slice without axes", "Slice", 7, starts=[0, 1], ends=[1, 3]),
    _one("slice by operands", "Slice", 10, "s e a t", weights={"s": np.array([5, 0]), "e": np.array([1 << 62, -1]),
         "a": np.array([-2, 1]), "t": np.array([1, 2])}),
    _one("split", "Split", 7, axis=1, split=[1, 2], outputs="y z"),
    _one("split evenly", "Split", 7, axis=3, outputs="y z"),
    _one("split by an operand", "Split", 13, "s", weights={"s": np.array([3, 4])}, axis=-2, outputs="y z"),
    _one("split into a number", "Split", 18, axis=2, num_outputs=3, outputs="y z w"),
    _one("pad", "Pad", 7, pads=_PADS, value=0.5),
    _one("pad by operands", "Pad", 11, "p v", weights={"p": np.array(_PADS), "v": 0.5}),
    _one("pad without a value", "Pad", 13, "p", weights={"p": np.array(_PADS)}),
    _one("pad that takes away", "Pad", 13, "p", weights={"p": np.array([0, 0, -1, 2, 0, 0, 1, -2])}),
    _one("pad some axes", "Pad", 18, "p v a", weights={"p": np.array([1, 2, 3, 4]), "v": 0.5, "a": np.array([-1, 1])}),
    _one("depth to space", "DepthToSpace", 7, blocksize=2, shape=(1, 8, 3, 2)),
    _one("depth to space by columns", "DepthToSpace", 11, blocksize=2, mode="CRD", shape=(1, 8, 3, 2)),
    _one("space to depth", "SpaceToDepth", 7, blocksize=2, shape=(1, 3, 4, 6)),
    _one("gather one", "Gather", 7, "i", weights={"i": np.array(-1)}, axis=1),
    _one("gather some", "Gather", 7, "i", weights={"i": np.array([[2, 0, 1], [0, 2, 2]])}, axis=1),
    _one("upsample", "Upsample", 7, mode="nearest", scales=[1.0, 1.0, 2.0, 3.0]),
    _one("upsample by an operand", "Upsample", 9, "s", weights={"s": [1.0, 1.0, 2.0, 3.0]}),
    _one("resize of opset 10", "Resize", 10, "s", weights={"s": [1.0, 1.0, 2.0, 3.0]}),
    *(_one(f"resize {mode} {nearest}", "Resize", 13, "- s", weights={"s": [1.0, 1.0, 2.0, 3.0]}, nearest_mode=nearest,
           coordinate_transformation_mode=mode)
      for mode, nearest in (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"),
                            ("half_pixel", "round_prefer_ceil"), ("pytorch_half_pixel", "round_prefer_floor"))),
    _one("resize to sizes", "Resize", 13, "- - s", weights={"s": np.array([2, 3, 14, 12])}),
    # Operators without effect.
    _one("dropout of opset 7", "Dropout", 7, ratio=0.5),
    _one("dropout of opset 13", "Dropout", 13, "r t", weights={"r": 0.5, "t": np.array(False)}),
    _one("cast to float", "Cast", 9, to=1),
    Case("shape plumbing", 9, [
        node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Unsqueeze", "n", "n1", axes=[0]),
        node("Constant", "", "rest", value=onnx.numpy_helper.from_array(np.array([-1]), "rest")),
        node("Concat", "n1 rest", "t", axis=0), node("Reshape", "x t", "y"),
    ], weights={"zero": np.array(0)}),
    Case("constant arithmetic", 13, [
        node("ConstantOfShape", "s", "ones", value=onnx.numpy_helper.from_array(np.ones(1, np.float32))),
        node("Cast", "i", "f", to=1), node("Div", "f k", "q"), node("Mul", "ones q", "w"), node("Mul", "x w", "y"),
    ], weights={"s": np.array([3, 1, 1]), "i": np.array(7), "k": 2.5}),
    # comparisons, logic, choices
    *(Case(f"{name.lower()} of two, as a number", 9 if name in ("Greater", "Less") else 12, [
        node(name, "x z", "c"), node("Cast", "c", "y", to=1),
    ], others={"z": (3, 1, 6)}) for name in ("Greater", "Less", "GreaterOrEqual", "LessOrEqual")),
    Case("a constant compared, and a choice", 12, [node("Greater", "k x", "c"), node("Where", "c x z", "y")],
         weights={"k": 0.25}, others={"z": (6,)}),
    Case("exclusive or", 12, [
        node("Greater", "x z", "a"), node("Less", "x k", "b"), node("Xor", "a b", "c"), node("Not", "c", "d"),
        node("Where", "d x z", "y"),
    ], weights={"k": 0.5}, others={"z": (2, 3, 7, 6)}),
    _one("cast there and back", "Cast", 9, to=7),
    # order
    *(_one(f"{name.lower()} from the {end}", name, 13, axis=-2, keepdims=0, select_last_index=last)
      for name in ("ArgMax", "ArgMin") for end, last in (("front", 0), ("back", 1))),
    _one("argmax of opset 7", "ArgMax", 7),
    _one("the best of opset 7", "TopK", 7, k=2, outputs="y i"),
    _one("the best of opset 10", "TopK", 10, "k", weights={"k": np.array([2])}, axis=1, outputs="y i"),
    _one("the least", "TopK", 11, "k", weights={"k": np.array([3])}, axis=2, largest=0, outputs="y i"),
    # lookups
    Case("a lookup by place", 11, [node("ArgMax", "z", "i", axis=0, keepdims=0), node("Gather", "x i", "y", axis=-2)],
         others={"z": (7, 4)}),
    Case("a lookup in every row", 11, [node("ArgMax", "x", "i", axis=2), node("GatherElements", "z i", "y", axis=2)],
         others={"z": (2, 3, 5, 6)}, shape=(2, 3, 5, 6)),
    _one("places in two axes", "GatherND", 12, "i", weights={"i": np.array([[[0, 1], [-1, 2]], [[2, 3], [1, -4]]])},
         batch_dims=1),
    Case("one hot", 11, [node("ArgMax", "x", "i", axis=1), node("OneHot", "i d v", "y", axis=1)],
         weights={"d": np.array(4), "v": _normal(2)}),
    _one("written to rows", "ScatterND", 11, "i u", weights={"i": np.array([[1], [-2]])}, others={"u": (2, 3)},
         shape=(4, 3)),
    *(_one(f"written to elements, opset {opset}", name, opset, "i u", weights={"i": np.array([[2, 0], [1, 3]])},
           others={"u": (2, 2)}, shape=(3, 4), axis=1) for name, opset in (("Scatter", 9), ("ScatterElements", 11))),
    Case("an identity matrix", 9, [node("EyeLike", "x", "e", k=1), node("Add", "x e", "y")], shape=(3, 4)),
    _one("a lower triangle", "Trilu", 14, "k", weights={"k": np.array(-1)}, upper=0),
    *(_one(f"hardmax of opset {opset}, axis {axis}", "Hardmax", opset, axis=axis)
      for opset, axis in ((7, 1), (11, 2), (13, 1), (13, -1))),
    _one("what a condition keeps", "Compress", 11, "c", weights={"c": np.array([True, False, True, True])}, axis=2),
    _one("what a condition keeps of all", "Compress", 9, "c", weights={"c": np.array([False, True, True])}),
    *(_one(f"pad {mode} of less than nothing", "Pad", 19, "p", weights={"p": np.array([0, 0, -1, 2, 0, 0, 2, -2])}, mode=mode)
      for mode in ("edge", "reflect", "wrap")),
    *(_one(f"{name} over no axis", name, 18, "a", weights={"a": np.zeros(0, np.int64)}, noop_with_empty_axes=1)
      for name in ("ReduceProd", "ReduceLogSumExp")),
    _one("the middle, cut out and surrounded", "CenterCropPad", 18, "s", weights={"s": np.array([4, 9])}, axes=[2, 3]),
    Case("a cast to the type of another", 15, [node("CastLike", "x k", "i"), node("CastLike", "i x", "y")],
         weights={"k": np.array([1])}),
    *(Case(f"what {name} replaces", 20, [node(name, "x", "n"), node("Where", "n k x", "y")], weights={"k": 3.0})
      for name in ("IsNaN", "IsInf")),
    _one("running sums from behind", "CumSum", 11, "a", weights={"a": np.array(-2)}, reverse=1, exclusive=1),
    _one("sequences turned round", "ReverseSequence", 10, "l", weights={"l": np.array([3, 1])}, batch_axis=0, time_axis=1),
    # movement
    *(_one(f"pad {mode}", "Pad", 19, "p", weights={"p": np.array([0, 1, 2, 1, 0, 0, 3, 2])}, mode=mode)
      for mode in ("edge", "reflect", "wrap")),
    _one("pad edge of opset 7", "Pad", 7, pads=_PADS, mode="edge"),
    _one("a slice backwards", "Slice", 10, "s e a t", weights={"s": np.array([-1, 1]), "e": np.array([-9, 3]),
         "a": np.array([2, 3]), "t": np.array([-2, 1])}),
    # images
    *(_one(f"resize linear {mode} to {h}x{w}", "Resize", 19, "- - s", weights={"s": np.array([2, 3, h, w])},
           mode="linear", coordinate_transformation_mode=mode)
      for mode in ("align_corners", "half_pixel", "pytorch_half_pixel", "asymmetric", "half_pixel_symmetric")
      for h, w in ((11, 9), (3, 4))),
    *(_one(f"resize cubic {mode}", "Resize", 19, "- - s", weights={"s": np.array([2, 3, 9, 4])}, mode="cubic",
           coordinate_transformation_mode=mode, exclude_outside=excluded)
      for mode, excluded in (("align_corners", 0), ("half_pixel", 1), ("asymmetric", 0))),
    *(_one(f"resize nearest {mode} {nearest} down", "Resize", 19, "- - s", weights={"s": np.array([2, 3, 4, 5])},
           coordinate_transformation_mode=mode, nearest_mode=nearest)
      for mode, nearest in (("align_corners", "ceil"), ("half_pixel", "floor"), ("asymmetric", "round_prefer_ceil"))),
    _one("resize by factors that are none of sizes", "Resize", 13, "- s", weights={"s": [1.0, 1.0, 1.7, 2.3]},
         mode="linear"),
    *(_one(f"resize {mode} smoothed, outside {outside}", "Resize", 19, "- - s", weights={"s": np.array([2, 3, 4, 3])},
           mode=mode, antialias=1, exclude_outside=outside) for mode in ("linear", "cubic") for outside in (0, 1)),
    *(_one(f"resize {mode} of a part", "Resize", 19, "r - s", mode=mode, coordinate_transformation_mode="tf_crop_and_resize",
           weights={"s": np.array([2, 3, 5, 4]), "r": np.float32([0, 0, 0.2, -0.3, 1, 1, 0.9, 0.8])},
           extrapolation_value=1.5) for mode in ("linear", "nearest")),
    *(_one(f"resize {policy}", "Resize", 19, "- - s", weights={"s": np.array([10, 15])}, axes=[2, 3],
           keep_aspect_ratio_policy=policy) for policy in ("not_larger", "not_smaller")),
    _one("resize linear of rank 3", "Resize", 13, "- s", weights={"s": [1.0, 1.0, 2.0]}, mode="linear", shape=(2, 3, 5)),
    _one("upsample linear", "Upsample", 9, "s", weights={"s": [1.0, 1.0, 2.0, 3.0]}, mode="linear"),
    # pools
    _one("max pool dilated", "MaxPool", 11, kernel_shape=[2, 3], dilations=[2, 2], pads=[1, 2, 1, 1], strides=[1, 2]),
    *(_one(f"average pool dilated, counted {counted}", "AveragePool", 19, kernel_shape=[2, 3], dilations=[2, 2],
           pads=[1, 2, 1, 1], count_include_pad=counted) for counted in (0, 1)),
    *(_one(f"lp pool {p}", "LpPool", 11, kernel_shape=[2, 3], strides=[2, 1], pads=[1, 1, 0, 1], p=p) for p in (1, 2, 3)),
    *(_one(f"global lp pool {p}", "GlobalLpPool", 7, p=p) for p in (1, 2, 3)),
    # sums of products by letters
    _one("einsum of stacks", "Einsum", 12, "z", others={"z": (2, 3, 5, 6)}, equation="bhid,bhjd->bhij"),
    _one("einsum by a constant", "Einsum", 12, "w", weights={"w": _normal(6, 2, 4)}, equation="bcsd,dhe->bhsce"),
    _one("einsum without an arrow", "Einsum", 12, "z", others={"z": (6, 5)}, shape=(3, 6), equation="ij,jk"),
    _one("einsum of three", "Einsum", 12, "z w", others={"z": (4, 5), "w": (5,)}, shape=(3, 4), equation="ij,jk,k->i"),
    _one("einsum of one", "Einsum", 12, equation="bchw->wb"),
    _one("einsum outwards", "Einsum", 12, "z", others={"z": (4,)}, shape=(3,), equation="i,j->ji"),
]  # fmt: skip
