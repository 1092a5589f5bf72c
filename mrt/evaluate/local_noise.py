"""Measures the noise that arises in each layer alone, apart from what it is given by others.

The float model is cut at every compared value: each layer is run in float on the numbers
that the program's integers stand for. What its result differs from the program's arose in
the layer: by rounding and clipping its values, or by its weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np
import onnx_ir as ir

from cvm.program import IntArray, Meaning
from cvm.proof.validate import Proven
from cvm.runtime import boundary, machine
from cvm.runtime.machine import Machine
from mrt.calibrate.samples import Sample, Samples
from mrt.calibrate.session import Array, FloatSession
from mrt.evaluate.layers import Layer, groups_of_sources
from mrt.evaluate.reals import in_order_of, real_of
from mrt.evaluate.scores import Noise
from mrt.graph.choose_outputs import end_in
from mrt.graph.names import Names
from mrt.progress import Progress


def local_noise(
    model: ir.Model,
    program: Proven,
    samples: Samples,
    layers: Sequence[Layer],
    progress: Progress | None = None,
) -> dict[int, Noise]:
    """Return the noise that arises in each layer, by its number.

    `model` is the rewritten float model from which the program was made. All runs once for
    each group of layers of which memory holds the values at once.
    """
    groups = groups_of_sources(model, layers)
    by_number = {layer.number: layer for layer in layers}
    noises = {number: Noise() for number in by_number}
    runs, done = machine.choose(program), 0
    for sources in groups:
        apart = _Apart(model, {layer.source for layer in layers}, sources)
        near = {*sources, *apart.inputs}
        source_of = {
            layer.number: layer.source
            for layer in layers
            if layer.source in near
        }
        both = _BothSides(model, program, runs, source_of)
        for sample in samples:
            inputs, values = both.run(sample)
            given = {**sample, **inputs}
            _add_noise(noises, apart, given, values, by_number)
            done += 1
            if progress is not None:
                total = len(groups) * len(samples)
                progress("measuring layers", done, total)
    return noises


def _add_noise(
    noises: Mapping[int, Noise],
    apart: _Apart,
    inputs: Sample,
    values: dict[int, Array],
    layers: Mapping[int, Layer],
) -> None:
    """Add what differs between each layer's values and those that float makes of its operands'."""
    by_source = {
        layers[number].source: value
        for number, value in reversed(values.items())
    }
    results = apart.run(inputs, by_source)
    for number, value in values.items():
        result = results.get(layers[number].source)
        if result is not None:
            compared = layers[number].compared(result, value)
            noises[number].add(result, value, compared)


class _BothSides:
    """The float model and the program, for the numbers that some layers' integers stand for."""

    def __init__(
        self,
        model: ir.Model,
        program: Proven,
        runs: Machine,
        source_of: Mapping[int, str],
    ) -> None:
        metadata = program.program.metadata
        assert metadata is not None, "there would be no layers"
        self._metadata, self._wanted = metadata, source_of
        self._program, self._runs = program.program, runs
        self._session = FloatSession(model, sorted(set(source_of.values())))

    def run(self, sample: Sample) -> tuple[dict[str, Array], dict[int, Array]]:
        """Return what the integers of inputs, by name, and of layers, by number, stand for."""
        real = self._session.run(sample)
        integers = boundary.quantize(self._program, sample)
        values: dict[int, Array] = {}

        def observe(number: int, value: IntArray) -> None:
            if number in self._wanted:
                meaning = self._metadata.values[number]
                exact = in_order_of(
                    real[self._wanted[number]], real_of(value, meaning)
                )
                values[number] = exact.astype(np.float32)

        self._runs.run(integers, observe=observe)
        return _dequantized(integers, self._metadata.inputs), values


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
    """A float model cut at the values of some names, that computes some of them from the others.

    `inputs` holds the values that it must be given, by name, under their names as inputs.
    """

    def __init__(
        self, model: ir.Model, cut: Set[str], names: Sequence[str]
    ) -> None:
        copy = model.clone()
        values = {
            str(value.name): value
            for node in copy.graph
            for value in node.outputs
        }
        inputs = [value.name for value in copy.graph.inputs]
        names_in_use = Names([*values, *inputs, *copy.graph.initializers])
        fresh: dict[str, ir.Value] = {}
        for name in sorted(cut):
            value = values[name]
            if value.dtype != ir.DataType.FLOAT or not value.uses():
                continue
            fresh[name] = ir.Value(
                name=names_in_use.first_free(name),
                shape=value.shape,
                type=value.type,
            )
            ir.convenience.replace_all_uses_with(
                value, fresh[name], replace_graph_outputs=True
            )
        end_in(copy, [values[name] for name in names])
        read = {name: value for name, value in fresh.items() if value.uses()}
        copy.graph.inputs.extend(read.values())
        self.inputs = {name: str(value.name) for name, value in read.items()}
        self._session = FloatSession(copy, names)

    def run(
        self, sample: Sample, values: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return each value as it follows from the sample and the other values."""
        inputs = {fresh: values[name] for name, fresh in self.inputs.items()}
        return self._session.run({**sample, **inputs})
