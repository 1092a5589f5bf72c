"""Writes transformer decoders with a key-value cache as ONNX, as exporters write them: one token in, logits out.

`nanogpt` has learned positions, LayerNormalization, GELU and a cache of fixed length that is written at the
position. `llama` has rotary embedding, RMS normalization, grouped attention and SwiGLU, and names and shapes as
Hugging Face's exports: the new keys stand behind the past ones, and a mask names the places in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Weights = dict[str, np.ndarray]


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder; the cache has room for `length` tokens."""

    vocabulary: int = 50
    width: int = 32
    heads: int = 4
    groups: int = 4  # heads of keys and values
    layers: int = 2
    hidden: int = 64
    length: int = 24

    @property
    def head(self) -> int:
        """The size of a head."""
        return self.width // self.heads


@dataclass
class Writer:
    """Nodes and weights of a graph under way; every method returns the name of its result."""

    weights: Weights
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: Weights = field(default_factory=dict)

    def add(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """A node whose result has a name of its own; inputs that are no names become constants."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        return self.named(name, operator, *inputs, **attributes)

    def named(
        self, name: str, operator: str, *inputs: Any, **attributes: Any
    ) -> str:
        """The same, with the name given."""
        read = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        self.nodes.append(
            helper.make_node(operator, read, [name], f"/{name}", **attributes)
        )
        return name

    def constant(self, numbers: Any) -> str:
        """Numbers that belong to the graph; floats in float32."""
        array = np.asarray(numbers)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = f"constant_{len(self.constants)}"
        self.constants[name] = array
        return name

    def weight(self, name: str) -> str:
        """The weights of this name."""
        self.constants[name] = self.weights[name].astype(np.float32)
        return name

    def linear(self, x: str, name: str) -> str:
        """x times the weights of this name."""
        return self.add("MatMul", x, self.weight(name))

    def model(
        self, inputs: list[Any], outputs: list[Any], opset: int = 17
    ) -> onnx.ModelProto:
        """The graph, checked."""
        initializers = [
            numpy_helper.from_array(array, name)
            for name, array in self.constants.items()
        ]
        graph = helper.make_graph(
            self.nodes, "decoder", inputs, outputs, initializer=initializers
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9
        )
        onnx.checker.check_model(model, full_check=True)
        return model


def _value(name: str, shape: list[int], kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def _token(name: str) -> Any:
    return _value(name, [1, 1], TensorProto.INT64)


def random_weights(shape: Shape, *, gated: bool, seed: int = 0) -> Weights:
    """Weights such as initialization gives; `gated` for llama."""
    rng = np.random.default_rng(seed)
    wide, cache_width = shape.width, shape.head * shape.groups
    sizes = {"wte": (shape.vocabulary, wide), "head": (wide, shape.vocabulary)}
    if not gated:
        sizes["wpe"] = (shape.length, wide)
    for i in range(shape.layers):
        sizes |= {
            f"{i}.q": (wide, wide),
            f"{i}.k": (wide, cache_width),
            f"{i}.v": (wide, cache_width),
            f"{i}.o": (wide, wide),
            f"{i}.up": (wide, shape.hidden),
            f"{i}.down": (shape.hidden, wide),
        }
        if gated:
            sizes[f"{i}.gate"] = (wide, shape.hidden)
    weights = {
        name: rng.normal(size=size) / np.sqrt(size[0])
        for name, size in sizes.items()
    }
    weights["wte"] = rng.normal(size=sizes["wte"])
    names = [f"{i}.norm{j}" for i in range(shape.layers) for j in (1, 2)]
    for name in (*names, "norm"):
        weights[name] = 1 + 0.1 * rng.normal(size=wide)
    return {name: x.astype(np.float32) for name, x in weights.items()}


def nanogpt(shape: Shape, weights: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """token, position, past.N.key, past.N.value -> logits, present.N.key, present.N.value, all of one length."""
    w = Writer(dict(weights))
    places = np.arange(shape.length, dtype=np.int64)
    at_position = w.add("Equal", places[:, None], "position")  # [L, 1]
    unseen = w.add("Greater", places[None, None, None], "position")
    x = w.add(
        "Add",
        w.add("Gather", w.weight("wte"), "token"),
        w.add("Gather", w.weight("wpe"), "position"),
    )
    inputs = [_token("token"), _token("position")]
    outputs = [_value("logits", [1, 1, shape.vocabulary])]
    for i in range(shape.layers):
        y = _layer_norm(w, x, f"{i}.norm1")
        cached = {}
        for role, short in (("key", "k"), ("value", "v")):
            new = _heads(w, w.linear(y, f"{i}.{short}"), shape.groups, shape)
            past, present = f"past.{i}.{role}", f"present.{i}.{role}"
            written = w.named(present, "Where", at_position, new, past)
            cached[role] = _repeated(w, written, shape)
            cache = [1, shape.groups, shape.length, shape.head]
            inputs.append(_value(past, cache))
            outputs.append(_value(present, cache))
        q = _heads(w, w.linear(y, f"{i}.q"), shape.heads, shape)
        keys = w.add("Transpose", cached["key"], perm=[0, 1, 3, 2])
        scores = w.add("MatMul", q, keys)
        scores = w.add("Div", scores, np.sqrt(np.float32(shape.head)))
        scores = w.add("Where", unseen, np.float32(-np.inf), scores)
        x = _attended(w, x, scores, cached["value"], i, shape)
        y = _layer_norm(w, x, f"{i}.norm2")
        x = w.add("Add", x, _gelu_mlp(w, y, i))
    w.named("logits", "MatMul", _layer_norm(w, x, "norm"), w.weight("head"))
    return w.model(inputs, outputs)


def llama(shape: Shape, weights: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """input_ids, attention_mask, position_ids, past_key_values.N.* -> logits, present.N.*, one place longer."""
    w = Writer(dict(weights))
    past_length, length = shape.length - 1, shape.length
    inputs = [
        _token("input_ids"),
        _value("attention_mask", [1, length], TensorProto.INT64),
        _token("position_ids"),
    ]
    outputs = [_value("logits", [1, 1, shape.vocabulary])]
    x = w.add("Gather", w.weight("wte"), "input_ids")
    in_use = w.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    hidden = w.add("Sub", np.float32(1), in_use)
    bias = w.add("Mul", hidden, np.finfo(np.float32).min)
    bias = w.add("Unsqueeze", bias, np.array([1, 2]))
    cos, sin = _rotary(w, shape)
    for i in range(shape.layers):
        y = _rms_norm(w, x, f"{i}.norm1")
        cached = {}
        for role, short in (("key", "k"), ("value", "v")):
            new = _heads(w, w.linear(y, f"{i}.{short}"), shape.groups, shape)
            if role == "key":
                new = _rotated(w, new, cos, sin, shape)
            past, present = f"past_key_values.{i}.{role}", f"present.{i}.{role}"
            cache = [1, shape.groups, past_length, shape.head]
            inputs.append(_value(past, cache))
            longer = [1, shape.groups, length, shape.head]
            outputs.append(_value(present, longer))
            joined = w.named(present, "Concat", past, new, axis=2)
            cached[role] = _repeated(w, joined, shape)
        q = _heads(w, w.linear(y, f"{i}.q"), shape.heads, shape)
        q = _rotated(w, q, cos, sin, shape)
        keys = w.add("Transpose", cached["key"], perm=[0, 1, 3, 2])
        scores = w.add("MatMul", q, keys)
        scores = w.add("Mul", scores, np.float32(shape.head**-0.5))
        scores = w.add("Add", scores, bias)
        x = _attended(w, x, scores, cached["value"], i, shape)
        y = _rms_norm(w, x, f"{i}.norm2")
        x = w.add("Add", x, _gated_mlp(w, y, i))
    w.named("logits", "MatMul", _rms_norm(w, x, "norm"), w.weight("head"))
    return w.model(inputs, outputs)


def _layer_norm(w: Writer, x: str, name: str) -> str:
    return w.add("LayerNormalization", x, w.weight(name), axis=-1, epsilon=1e-5)


def _rms_norm(w: Writer, x: str, name: str) -> str:
    """As Llama's modules are traced: x * rsqrt(mean(x^2) + e) * weight."""
    square = w.add("Pow", x, np.float32(2))
    mean = w.add("ReduceMean", square, axes=[-1], keepdims=1)
    root = w.add("Sqrt", w.add("Add", mean, np.float32(1e-5)))
    factor = w.add("Div", np.float32(1), root)
    return w.add("Mul", w.weight(name), w.add("Mul", x, factor))


def _heads(w: Writer, x: str, heads: int, shape: Shape) -> str:
    """[1, 1, heads * head] -> [1, heads, 1, head]."""
    split = w.add("Reshape", x, np.array([1, 1, heads, shape.head]))
    return w.add("Transpose", split, perm=[0, 2, 1, 3])


def _attended(
    w: Writer, x: str, scores: str, values: str, layer: int, shape: Shape
) -> str:
    """x and what its attention gathered."""
    read = w.add("MatMul", w.add("Softmax", scores, axis=-1), values)
    joined = w.add("Transpose", read, perm=[0, 2, 1, 3])
    joined = w.add("Reshape", joined, np.array([1, 1, shape.width]))
    return w.add("Add", x, w.linear(joined, f"{layer}.o"))


def _gelu_mlp(w: Writer, y: str, layer: int) -> str:
    up = w.linear(y, f"{layer}.up")
    erf = w.add("Erf", w.add("Div", up, np.sqrt(np.float32(2))))
    gate = w.add("Mul", up, w.add("Add", erf, np.float32(1)))
    return w.linear(w.add("Mul", gate, np.float32(0.5)), f"{layer}.down")


def _gated_mlp(w: Writer, y: str, layer: int) -> str:
    gate = w.linear(y, f"{layer}.gate")
    gate = w.add("Mul", gate, w.add("Sigmoid", gate))
    product = w.add("Mul", gate, w.linear(y, f"{layer}.up"))
    return w.linear(product, f"{layer}.down")


def _rotary(w: Writer, shape: Shape) -> tuple[str, str]:
    """Cosines and sines of the position's angles, [1, 1, 1, head], computed in the graph."""
    steps = np.arange(0, shape.head, 2, dtype=np.float32) / shape.head
    speeds = (10000.0**-steps).astype(np.float32)[:, None]
    position = w.add("Cast", "position_ids", to=TensorProto.FLOAT)
    angles = w.add("Transpose", w.add("MatMul", speeds, position), perm=[1, 0])
    angles = w.add("Concat", angles, angles, axis=-1)
    angles = w.add("Unsqueeze", angles, np.array([0, 1]))
    return w.add("Cos", angles), w.add("Sin", angles)


def _rotated(w: Writer, x: str, cos: str, sin: str, shape: Shape) -> str:
    """x * cos + (its halves swapped, the second one negated) * sin."""
    half, end = shape.head // 2, np.array([2**31])
    axis = np.array([3])
    low = w.add("Slice", x, np.array([0]), np.array([half]), axis)
    high = w.add("Slice", x, np.array([half]), end, axis)
    turned = w.add("Concat", w.add("Neg", high), low, axis=-1)
    return w.add("Add", w.add("Mul", x, cos), w.add("Mul", turned, sin))


def _repeated(w: Writer, x: str, shape: Shape) -> str:
    """Every head of keys or values once for each head that reads it."""
    times = shape.heads // shape.groups
    if times == 1:
        return x
    spread = w.add("Unsqueeze", x, np.array([2]))
    sizes = [1, shape.groups, times, shape.length, shape.head]
    spread = w.add("Expand", spread, np.array(sizes))
    joined = np.array([1, shape.heads, shape.length, shape.head])
    return w.add("Reshape", spread, joined)
