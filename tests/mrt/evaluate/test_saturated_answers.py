"""Probabilities that are nearly 0 or 1 in all samples measured are noted, by `mrt convert` and by `mrt evaluate`.

Bits are chosen by the scores before them.
"""

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


SCORES = "main (float[1, 2] x) => (float[1, {size}] y) <float[2, {size}] w = {{{weights}}}> {{ s = MatMul (x, w) {head} }}"
HEADS = [
    ("0.04, 0, -0.04, 8, 0, 0", "y = Softmax <axis = 1> (s)"),
    ("0.04, 0, -0.04, 8, 0, 0", "l = LogSoftmax <axis = 1> (s) y = Exp (l)"),
    ("0.04, 5", "y = Sigmoid (s)"),
]


def converted_with(tmp_path, weights, head, *, size, **options):
    """Convert a classifier of two columns: a great one, which decides, and a small one, which 8 bits lose beside it."""
    text = SCORES.format(
        weights=weights, head=head, size=weights.count(",") // 2 + 1
    )
    text = f'<ir_version: 9, opset_import: ["" : 17]> {text}'
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    rng = np.random.default_rng(0)
    great = rng.choice([-size, size], 96) * rng.uniform(1, 1.2, 96)
    x = np.stack([great, rng.uniform(-1, 1, 96)], 1).astype(np.float32)
    return mrt.convert(tmp_path / "m.onnx", {"x": x[:, None]}, **options)


@pytest.mark.parametrize(("weights", "head"), HEADS)
def test_bits_are_chosen_by_the_scores_of_sure_probabilities(
    weights, head, tmp_path
):
    of_8 = converted_with(tmp_path, weights, head, size=500, bits=8)
    verdict = of_8.conversion.quality.verdict
    assert verdict.snr_db > 40 and verdict.word == "look at it"
    assert f"dB, scores {verdict.scores_db:.1f} dB" in verdict.sentence
    assert 10 < verdict.scores_db < 20
    chosen = converted_with(tmp_path, weights, head, size=500).conversion
    assert chosen.chosen["activation_bits"] == 16
    verdict = chosen.quality.verdict
    assert verdict.is_good and verdict.scores_db > 30
    (note,) = chosen.quality.notes()
    assert note.startswith("output 'y' is within 0.001 of 0 or 1 in")
    assert note.endswith(
        f"the verdict counts the scores before its Softmax or Sigmoid as well ({verdict.scores_db:.1f} dB)"
    )


@pytest.mark.parametrize(("weights", "head"), HEADS)
def test_probabilities_that_are_not_sure_are_judged_by_themselves(
    weights, head, tmp_path
):
    verdict = converted_with(
        tmp_path, weights, head, size=20, bits=8
    ).conversion.quality.verdict
    assert verdict.scores_db is None and "scores" not in verdict.sentence
