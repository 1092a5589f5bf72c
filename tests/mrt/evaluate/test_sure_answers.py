"""Probabilities that are nearly 0 or 1 in all samples measured are noted, by `mrt convert` and by `mrt evaluate`."""

import numpy as np
import onnx
import pytest
from onnx import parser

import mrt
from mrt.evaluate.verdict import notes_on_change

MODEL = """<ir_version: 9, opset_import: ["" : 17]>
main (float[1, 3] x) => (float[1, 3] y) { y = Softmax (x) }"""


@pytest.mark.parametrize(("unsure", "is_noted"), [(0, True), (4, False)])
def test_probabilities_that_saturate_are_noted(unsure, is_noted, tmp_path):
    onnx.save(parser.parse_model(MODEL), tmp_path / "m.onnx")
    rng = np.random.default_rng(0)
    places = rng.integers(0, 3, 24)
    samples = 20 * np.eye(3, dtype=np.float32)[places][:, None]
    samples[:unsure] = rng.uniform(-1, 1, (unsure, 1, 3))
    converted = mrt.convert(tmp_path / "m.onnx", {"x": samples})
    notes = converted.conversion.quality.notes()
    notes += notes_on_change(converted.evaluate({"x": samples}))
    found = [note for note in notes if "where noise hardly shows" in note]
    assert len(found) == 2 * is_noted
    for note in found:
        assert note.startswith(
            "output 'y' is within 0.001 of 0 or 1 in 24 of 24 samples"
        )
