"""The page of all architectures: what its numbers come from, and how it says that one does not convert."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import results, zoo
from benchmarks.results_page import page
from benchmarks.zoo_figures import Figures, float_work
from tests.support.graphs import graph_of, node
from tests.support.shared_data import needs_shared

FIGURES = Figures(
    "small", 32, parameters=2_500_000, float_bytes=10_000_000, program_bytes=2_500_000, float_products=3_000_000,
    float_others=40_000, operators={"Relu": 1, "Conv": 2}, products=3_100_000, element_operations=50_000, table_reads=0,
    instructions={"conv2d": 2, "rescale": 2}, slack="7.25", snr_db=38.04, same_class=True, reference="same",
)  # fmt: skip


def test_an_architecture_is_a_row_in_each_table():
    lines = page([FIGURES]).splitlines()
    assert (
        "| small | 32x32 | 2.50 | 10.00 | 2.50 | 4.00 | 7.25 | 38.0 | yes |"
        in lines
    )
    assert "| small | 3.00 | 0.04 | 3.10 | 0.05 | 0.00 |" in lines
    assert "| small | 2 Conv, 1 Relu | 2 conv2d, 2 rescale |" in lines
    assert "1 of 1 convert." in lines


def test_one_that_does_not_convert_is_named_with_the_reason_and_in_no_table():
    text = page(
        [
            FIGURES,
            Figures("odd", 224, failure="n (Custom): unsupported operator"),
        ]
    )
    assert (
        "1 of 2 convert.\n\n- odd does not: n (Custom): unsupported operator\n"
        in text
    )
    assert "| odd" not in text


@pytest.mark.parametrize(
    ("one", "shapes", "weights", "expected"),
    [
        (
            node("Conv", "x w", "y", group=2),
            {"x": (1, 4, 5, 5)},
            {"w": (6, 2, 3, 3)},
            (9 * 6 * 18, 0),
        ),
        (
            node("Gemm", "x w", "y", transA=1),
            {"x": (7, 3)},
            {"w": (7, 2)},
            (3 * 2 * 7, 0),
        ),
        (node("Relu", "x", "y"), {"x": (3, 5)}, {}, (0, 15)),
        (node("Transpose", "x", "y"), {"x": (3, 5)}, {}, (0, 0)),
    ],
    ids=lambda item: getattr(item, "op_type", ""),
)
def test_float_operations_are_counted_from_shapes(
    one, shapes, weights, expected
):
    arrays = {
        name: np.zeros(shape, np.float32) for name, shape in weights.items()
    }
    (found,) = graph_of([one], shapes, arrays).graph
    assert float_work(found) == expected


def test_without_the_symbols_it_says_so_and_writes_nothing(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(zoo, "SHARED", tmp_path)
    done = CliRunner().invoke(
        results.main, ["--output", str(tmp_path / "page.md")]
    )
    assert done.exit_code == 0
    assert "41 of 41 architectures are absent from" in done.output.replace(
        "\n", " "
    )
    assert not (tmp_path / "page.md").exists()


@needs_shared
def test_kept_figures_are_taken_as_long_as_nothing_changed(
    monkeypatch, tmp_path
):
    item = next(
        item for item in zoo.architectures() if item.name == "mobilenet0.25"
    )
    monkeypatch.setattr(results, "CACHE", tmp_path)
    monkeypatch.setattr(results, "converter", lambda: "now")
    measured = []
    monkeypatch.setattr(
        results, "measured", lambda item: measured.append(item.name) or FIGURES
    )
    assert (
        results.figures_of(item, kept=False)
        == results.figures_of(item, kept=False)
        == FIGURES
    )
    assert measured == ["mobilenet0.25"]
    monkeypatch.setattr(results, "converter", lambda: "later")
    assert results.figures_of(item, kept=True) == FIGURES and len(measured) == 1
    assert (
        results.figures_of(item, kept=False) == FIGURES and len(measured) == 2
    )
    assert (
        json.loads((tmp_path / "mobilenet0.25.json").read_text())["key"][1]
        == "later"
    )


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize(
    "name",
    ["mobilenet0.25", "squeezenet1.1", "resnet18_v1", "mobilenetv3_small"],
)
def test_an_architecture_converts_and_both_machines_agree(name):
    item = next(item for item in zoo.architectures() if item.name == name)
    found = results.measured(item)
    assert found.failure is None and found.same_class and found.snr_db > 15
    assert found.reference == "same" or found.products > 700_000_000
    assert 3.4 < found.float_bytes / found.program_bytes < 4.2
