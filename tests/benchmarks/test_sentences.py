"""The page of the sentence encoder: what it says of embeddings and times, and what it does without the model."""

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import sentence_models, sentences
from benchmarks.sentences import DYNAMIC, FLOAT, Row, cosine, page
from benchmarks.sentences import same_neighbours as same


def test_the_cosine_is_a_mean_over_sentences_whatever_the_lengths():
    exact = np.array([[2.0, 0.0], [0.0, 3.0]])
    found = np.array([[5.0, 0.0], [4.0, 3.0]])
    assert cosine(found, exact) == pytest.approx((1 + 3 / 5) / 2)


def test_nearest_neighbours_are_others():
    exact = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    assert same(3 * exact, exact) == 1
    turned = exact[[0, 2, 1, 3]]
    assert same(turned, exact) == 0


def test_times_are_multiples_of_the_dynamic_quantization():
    rows = [
        Row(FLOAT, 10.0, 1.0, 1.0),
        Row(DYNAMIC, 4.0, 0.96123, 0.875),
    ]
    text = page(rows, {"cores": 2})
    assert f"| {FLOAT} | 2.50 | 1.0000 | 100.0 |\n" in text
    assert f"| {DYNAMIC} | 1.00 | 0.9612 | 87.5 |\n" in text
    assert "Cores 2." in text


def test_without_the_model_the_page_stays(monkeypatch, tmp_path):
    monkeypatch.setattr(sentence_models, "SCRIPT", tmp_path / "make_onnx.py")
    target = tmp_path / "page.md"
    done = CliRunner().invoke(sentences.main, ["--output", str(target)])
    assert done.exit_code == 0 and not target.exists()
    assert "make_onnx.py is absent" in done.output.replace("\n", " ")
