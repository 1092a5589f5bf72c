"""Whether two float models give the same answers: the one of the file, and the one that rewriting made of it.

A program is compared with the rewritten model, so that a mistake of rewriting would not
show in any figure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import onnx_ir as ir

from mrt.calibrate.samples import Sample
from mrt.calibrate.session import FloatSession
from mrt.evaluate.scores import Equality, Noise

LEAST_DECIBELS = 40.0
"""Float sums in another order differ by far less; a mistake, by far more."""
LEAST_EQUAL = 0.9
"""Of integers: those that a threshold decides may fall on either side."""


def differing_outputs(
    model: ir.Model,
    rewritten: ir.Model,
    samples: Iterable[Sample],
    samples_of_rewritten: Iterable[Sample],
) -> dict[str, str]:
    """Return how far apart the outputs are, by name, of those that are not the same but for float rounding."""
    sessions = FloatSession(model), FloatSession(rewritten)
    noise: defaultdict[str, Noise] = defaultdict(Noise)
    equality: defaultdict[str, Equality] = defaultdict(Equality)
    for sample, other in zip(samples, samples_of_rewritten, strict=True):
        expected = sessions[0].run(sample)
        actual = sessions[1].run(other)
        for name in expected.keys() & actual.keys():
            if expected[name].shape != actual[name].shape:
                return {name: "another shape"}
            of_reals = expected[name].dtype.kind == "f"
            measure = noise[name] if of_reals else equality[name]
            measure.add(expected[name], actual[name])
    return {**_far_apart(noise), **_unequal(equality)}


def _far_apart(noise: Mapping[str, Noise]) -> dict[str, str]:
    return {
        name: f"SNR {decibels:.1f} dB"
        for name, measure in noise.items()
        if (decibels := measure.decibels()) is not None
        and decibels < LEAST_DECIBELS
    }


def _unequal(equality: Mapping[str, Equality]) -> dict[str, str]:
    return {
        name: f"{100 * measure.share:.1f} % of integers equal"
        for name, measure in equality.items()
        if measure.share < LEAST_EQUAL
    }
