"""Measures the noise that arises in each layer alone, apart from what it is given by others.

The float model is cut at every compared value: each layer is run in float on the numbers
that the program's integers stand for. What its result differs from the program's arose in
the layer: by rounding and clipping its values, or by its weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray, Meaning
from cvm.proof.validate import Proven
from cvm.runtime import boundary, machine
from mrt.calibrate.samples import Sample, Samples
from mrt.calibrate.session import Array, FloatSession
from mrt.evaluate.layers import Layer, in_order_of, real_of
from mrt.evaluate.scores import Noise
from mrt.progress import Progress


def local_noise(
    model: ir.Model,
    program: Proven,
    samples: Samples,
    layers: Sequence[Layer],
    progress: Progress | None = None,
) -> dict[int, Noise]:
    """Return the noise that arises in each layer, by its number.

    `model` is the rewritten float model from which the program was made.
    """
    metadata = program.program.metadata
    assert metadata is not None, "there would be no layers"
    sources = sorted({layer.source for layer in layers})
    whole, apart = FloatSession(model, sources), _Apart(model, sources)
    runs = machine.choose(program)
    wanted = {layer.number: layer.source for layer in layers}
    found = {number: Noise() for number in wanted}
    for done, sample in enumerate(samples, 1):
        real = whole.run(sample)
        integers = boundary.quantize(program.program, sample)
        values: dict[int, Array] = {}

        def observe(
            number: int,
            value: IntArray,
            real: Mapping[str, Array] = real,
            values: dict[int, Array] = values,
        ) -> None:
            if number in wanted:
                meaning = metadata.values[number]
                values[number] = in_order_of(
                    real[wanted[number]], real_of(value, meaning)
                )

        runs.run(integers, observe=observe)
        given = _dequantized(integers, metadata.inputs)
        by_source = {
            wanted[number]: value for number, value in reversed(values.items())
        }
        results = apart.run({**sample, **given}, by_source)
        for number, value in values.items():
            found[number].add(results[wanted[number]], value)
        if progress is not None:
            progress("measuring layers", done, len(samples))
    return found


def _dequantized(
    integers: Mapping[str, IntArray], meanings: Mapping[str, Meaning]
) -> dict[str, Array]:
    """Return what the integers of the inputs stand for."""
    return {
        name: real_of(value, meanings[name]).astype(np.float32)
        for name, value in integers.items()
        if name in meanings
    }


class _Apart:
    """A float model that is given the values of these names, and computes each from the others."""

    def __init__(self, model: ir.Model, names: Sequence[str]) -> None:
        copy = model.clone()
        values = {
            str(value.name): value
            for node in copy.graph
            for value in node.outputs
        }
        taken = {*values, *(str(value.name) for value in copy.graph.inputs)}
        taken.update(copy.graph.initializers)
        copy.graph.outputs.clear()
        self._inputs: dict[str, str] = {}
        for name in names:
            value = values[name]
            if value.dtype != ir.DataType.FLOAT or not value.uses():
                continue
            fresh = ir.Value(
                name=_free_name(name, taken), shape=value.shape, type=value.type
            )
            taken.add(str(fresh.name))
            ir.convenience.replace_all_uses_with(value, fresh)
            copy.graph.inputs.append(fresh)
            self._inputs[name] = str(fresh.name)
        self._session = FloatSession(copy, names)

    def run(
        self, sample: Sample, values: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return each value as it follows from the sample and the other values."""
        given = {
            fresh: values[name].astype(np.float32)
            for name, fresh in self._inputs.items()
        }
        return self._session.run({**sample, **given})


def _free_name(name: str, taken: set[str]) -> str:
    while (name := f"{name}'") in taken:
        pass
    return name
