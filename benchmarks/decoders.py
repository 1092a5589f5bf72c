"""Decoders: tokens a second beside onnxruntime's float and dynamic int8, in turns, on the same prompt.

`python -m benchmarks.decoders` prints a table; the weights are seeded, for speed does not depend on them.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnxruntime.quantization import QuantType, quantize_dynamic

import cvm
import mrt
from benchmarks.decoder_models import Shape, llama, nanogpt, random_weights
from benchmarks.measure import Turn, alternate
from cvm.program.decoder import (
    find_name,
    mask_at,
    position_at,
    usual_states,
)

MAKERS = {"nanogpt": nanogpt, "llama": llama}
SHAPE = Shape(
    vocabulary=4096,
    width=384,
    heads=6,
    groups=6,
    layers=6,
    hidden=1536,
    length=128,
)
PROMPT = [1, 2, 3, 4]
Generate = Callable[[list[int], int], list[int]]


class FloatDecoder:
    """An ONNX decoder in onnxruntime, which generates as `cvm generate` does."""

    def __init__(self, path: Path, threads: int) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = ort.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self.shapes = {
            port.name: tuple(port.shape) for port in self.session.get_inputs()
        }
        self.names = [port.name for port in self.session.get_outputs()]
        self.states = usual_states(self.shapes, self.names)

    def generate(self, prompt: list[int], count: int) -> list[int]:
        """The greedy tokens after a prompt."""
        states = self.first_states()
        tokens = list(prompt)
        for step in range(len(prompt) + count - 1):
            chosen, states = self.step(step, tokens[step], states)
            if step == len(tokens) - 1:
                tokens.append(chosen)
        return tokens[len(prompt) :]

    def first_states(self) -> dict[str, npt.NDArray[Any]]:
        """The states before the first token."""
        return {
            name: np.zeros(self.shapes[name], np.float32)
            for name in self.states
        }

    def step(
        self, step: int, token: int, states: Mapping[str, npt.NDArray[Any]]
    ) -> tuple[int, dict[str, npt.NDArray[Any]]]:
        """The chosen token, and the states for the next step."""
        feeds = dict(states)
        contents = {
            "token": lambda _, shape: np.full(shape, token, np.int64),
            "position": position_at,
            "mask": mask_at,
        }
        for role, content in contents.items():
            if name := find_name(role, self.shapes):
                feeds[name] = content(step, self.shapes[name])
        answers = self.session.run(self.names, feeds)
        outputs = dict(zip(self.names, answers, strict=True))
        following = {
            name: outputs[output][:, :, -self.shapes[name][2] :]
            for name, output in self.states.items()
        }
        return int(outputs["logits"].argmax()), following


def contenders(kind: str, folder: Path, threads: int) -> dict[str, Generate]:
    """The generators of tokens, by name."""
    weights = random_weights(SHAPE, gated=kind == "llama")
    path, dynamic = folder / "m.onnx", folder / "m.int8.onnx"
    onnx.save(MAKERS[kind](SHAPE, weights), path)
    quantize_dynamic(path, dynamic, weight_type=QuantType.QInt8)
    rng = np.random.default_rng(1)
    np.savez(
        folder / "d.npz", tokens=rng.integers(0, SHAPE.vocabulary, (2, 64))
    )
    generators: dict[str, Generate] = {}
    for bits in (8, 4):
        options: dict[str, Any] = {"weight_bits": bits, "samples": 32}
        converted = mrt.convert(
            path, folder / "d.npz", refine="none", **options
        )
        saved = converted.save(folder / f"{bits}.cvm")
        print(f"  {kind}, {bits} bits: {saved.stat().st_size:,} bytes")
        generators[f"engine, weights of {bits} bits"] = _ours(saved, threads)
    for name, model in (("float32", path), ("dynamic int8", dynamic)):
        print(f"  {kind}, {name}: {model.stat().st_size:,} bytes")
        generators[f"onnxruntime {name}"] = FloatDecoder(
            model, threads
        ).generate
    return generators


def _ours(path: Path, threads: int) -> Generate:
    program = cvm.load(path, engine="native")
    return lambda prompt, count: list(
        program.generate(prompt, count, threads=threads).tokens
    )


def _reader(generate: Generate, count: int) -> Turn:
    """Reads the steps a second of one generation."""

    def read() -> float:
        start = time.perf_counter()
        generate(PROMPT, count)
        seconds = time.perf_counter() - start
        return (len(PROMPT) + count - 1) / seconds

    return Turn(read, 10**9)


def main() -> None:
    """Time every contender on both decoders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    print(platform.processor() or platform.machine())
    for kind in MAKERS:
        with TemporaryDirectory() as folder:
            generators = contenders(kind, Path(folder), chosen.threads)
            turns = {
                name: _reader(generate, chosen.tokens)
                for name, generate in generators.items()
            }
            speeds = alternate(turns, chosen.rounds)
        basis = median(speeds["onnxruntime float32"])
        for name, readings in speeds.items():
            speed = median(readings)
            print(
                f"{kind:8} {name:24} {speed:8.1f} tokens/s  {speed / basis:5.2f} of float32"
            )


if __name__ == "__main__":
    main()
