"""Trains small decoders on a text that ships with Python, letter by letter, so that agreement of tokens means something.

`python -m benchmarks.decoder_training` trains both kinds with jax (minutes each), converts them with default options and with
`--activation-bits 16`, and prints how often the integers choose float's token on text that neither training nor calibration saw.
"""

from __future__ import annotations

import pydoc_data.topics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import onnx

import cvm
import mrt
from benchmarks.cache import made
from benchmarks.decoder_models import Shape, random_weights
from benchmarks.decoders import MAKERS, FloatDecoder

LENGTH = 64
STEPS = 1500
BATCH = 16
TRAINED = 0.9
"""The share of the text that is trained and calibrated on."""
SEQUENCES = 8  # of calibration, and of the test
GENERATIONS, PROMPT = 20, 16
OPTIONS: tuple[dict[str, Any], ...] = ({}, {"activation_bits": 16})
Weights = dict[str, Any]


@dataclass(frozen=True)
class Text:
    """A text as numbers of its letters."""

    letters: str
    tokens: npt.NDArray[np.int64]

    @staticmethod
    def of_python() -> Text:
        """The topics of Python's own help."""
        topics = pydoc_data.topics.topics
        text = "".join(topics[name] for name in sorted(topics))
        text = "".join(c for c in text if c == "\n" or " " <= c <= "~")
        letters = "".join(sorted(set(text)))
        number = {letter: index for index, letter in enumerate(letters)}
        return Text(letters, np.array([number[letter] for letter in text]))

    def pieces(
        self,
        seed: int,
        count: int,
        *,
        length: int = LENGTH,
        held_out: bool = False,
    ) -> Any:
        """Sequences of the first part, or of the part that is held out, [count, length]."""
        end = int(len(self.tokens) * TRAINED)
        low, high = (end, len(self.tokens)) if held_out else (0, end)
        starts = np.random.default_rng(seed).integers(low, high - length, count)
        return np.stack([self.tokens[at : at + length] for at in starts])


def shape_of(kind: str, text: Text) -> Shape:
    """The sizes of a decoder of this kind."""
    groups = 6 if kind == "nanogpt" else 2
    return Shape(len(text.letters), 96, 6, groups, 3, 256, LENGTH)


def logits_of(weights: Weights, tokens: Any, shape: Shape, gated: bool) -> Any:
    """The model of `decoder_models` on whole sequences."""
    batch, length = tokens.shape
    x = weights["wte"][tokens]
    if not gated:
        x = x + weights["wpe"][:length]
    mask = jnp.tril(jnp.ones((length, length), bool))
    for layer in range(shape.layers):
        w = {name: weights.get(f"{layer}.{name}") for name in _NAMES}
        y = _normalized(x, w["norm1"], gated)

        def heads(name: str, count: int, y: Any = y, w: Any = w) -> Any:
            split = (y @ w[name]).reshape(batch, length, count, shape.head)
            return split.transpose(0, 2, 1, 3)

        q, k = heads("q", shape.heads), heads("k", shape.groups)
        if gated:
            q, k = _rotated(q), _rotated(k)
        times = shape.heads // shape.groups
        k = jnp.repeat(k, times, 1)
        v = jnp.repeat(heads("v", shape.groups), times, 1)
        scores = q @ k.transpose(0, 1, 3, 2) / jnp.sqrt(shape.head)
        read = jax.nn.softmax(jnp.where(mask, scores, -1e9), -1) @ v
        joined = read.transpose(0, 2, 1, 3).reshape(batch, length, -1)
        x = x + joined @ w["o"]
        x = x + _mlp(_normalized(x, w["norm2"], gated), w, gated)
    return _normalized(x, weights["norm"], gated) @ weights["head"]


_NAMES = ("norm1", "norm2", "q", "k", "v", "o", "up", "down", "gate")


def _normalized(x: Any, scale: Any, gated: bool) -> Any:
    if not gated:
        x = x - x.mean(-1, keepdims=True)
    return x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale


def _rotated(x: Any) -> Any:
    half = x.shape[-1] // 2
    speeds = 10000.0 ** (-jnp.arange(half) / half)
    angles = jnp.tile(jnp.arange(x.shape[2])[:, None] * speeds, 2)
    turned = jnp.concatenate([-x[..., half:], x[..., :half]], -1)
    return x * jnp.cos(angles) + turned * jnp.sin(angles)


def _mlp(y: Any, w: Weights, gated: bool) -> Any:
    up = y @ w["up"]
    if gated:
        return (jax.nn.silu(y @ w["gate"]) * up) @ w["down"]
    return jax.nn.gelu(up, approximate=False) @ w["down"]


def train(kind: str, text: Text, folder: Path) -> None:
    """Train by Adam, and write weights.npz."""
    shape, gated = shape_of(kind, text), kind == "llama"
    weights = random_weights(shape, gated=gated, seed=1)
    smaller = {"wte": 0.1, "wpe": 0.05}
    weights = {
        name: jnp.array(x if "norm" in name else x * smaller.get(name, 0.5))
        for name, x in weights.items()
    }
    logits = partial(logits_of, shape=shape, gated=gated)

    def loss(weights: Weights, tokens: Any) -> Any:
        chances = jax.nn.log_softmax(logits(weights, tokens[:, :-1]))
        return -jnp.take_along_axis(chances, tokens[:, 1:, None], -1).mean()

    @jax.jit
    def step(weights: Any, first: Any, second: Any, tokens: Any, t: Any) -> Any:
        slopes = jax.grad(loss)(weights, tokens)
        rate = 3e-3 * jnp.minimum(1, t / 50) * (1 - 0.9 * t / STEPS)
        first = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, first, slopes)
        second = jax.tree.map(
            lambda a, g: 0.98 * a + 0.02 * g * g, second, slopes
        )
        weights = jax.tree.map(
            lambda w, a, b: (
                w
                - rate * a / (1 - 0.9**t) / (jnp.sqrt(b / (1 - 0.98**t)) + 1e-8)
            ),
            weights,
            first,
            second,
        )
        return weights, first, second

    first = second = jax.tree.map(jnp.zeros_like, weights)
    for t in range(1, STEPS + 1):
        batch = text.pieces(1000 + t, BATCH, length=LENGTH + 1)
        weights, first, second = step(weights, first, second, batch, t)
    arrays: Mapping[str, Any] = {n: np.asarray(x) for n, x in weights.items()}
    np.savez(folder / "weights.npz", **arrays)


def judge(kind: str, text: Text, folder: Path, **options: Any) -> str:
    """Convert a trained model, and compare it with float on the held-out text."""
    path = folder / "model.onnx"
    with np.load(folder / "weights.npz") as weights:
        onnx.save(MAKERS[kind](shape_of(kind, text), dict(weights)), path)
    np.savez(folder / "tokens.npz", tokens=text.pieces(3, SEQUENCES))
    np.savez(
        folder / "test.npz", tokens=text.pieces(4, SEQUENCES, held_out=True)
    )
    converted = mrt.convert(path, folder / "tokens.npz", **options)
    program = cvm.load(converted.save(folder / "model.cvm"))
    report = converted.evaluate(folder / "test.npz")
    decoder, same, equal = FloatDecoder(path, 1), 0, 0
    count = LENGTH - PROMPT + 1
    for piece in text.pieces(5, GENERATIONS, held_out=True):
        prompt = [int(token) for token in piece[:PROMPT]]
        floats = decoder.generate(prompt, count)
        ours = program.generate(prompt, count).tokens
        equal += tuple(floats) == ours
        same += sum(a == b for a, b in zip(floats, ours, strict=True))
    return (
        f"{kind} {options or ''}: same next token {report.agreement:.2%}; of {GENERATIONS} generations of {count} tokens "
        f"{equal} are float's from end to end, and {same / GENERATIONS / count:.1%} of all tokens"
    )


def main() -> None:
    """Train what was not trained before, and judge both."""
    text = Text.of_python()
    for kind in MAKERS:
        origins = [kind, STEPS, LENGTH, len(text.tokens)]
        folder = made(f"decoder-{kind}", origins, partial(train, kind, text))
        for options in OPTIONS:
            print(judge(kind, text, folder, **options), flush=True)


if __name__ == "__main__":
    main()
