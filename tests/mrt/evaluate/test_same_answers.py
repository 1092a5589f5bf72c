"""A mistake of rewriting shows: the file's model and the rewritten one are compared in float."""

import json
from dataclasses import replace

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from click.testing import CliRunner

from mrt import project
from mrt.cli import cli
from mrt.evaluate.same_answers import answers, differences
from tests.support.graphs import build, graph_of, node

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 1, 6)).astype(np.float32)
FACTORS = RANDOM.normal(size=6).astype(np.float32)
SAMPLES = [{"x": x} for x in X[:4]]


def times(factors: np.ndarray) -> ir.Model:
    """Two outputs, of a number and of a comparison."""
    return graph_of(
        [node("Mul", "x k", "y"), node("Greater", "x t", "z")],
        {"x": (1, 6)},
        {"k": factors, "t": np.float32(factors[0])},
        outputs="y z",
    )


def differing_outputs(model: ir.Model, other: ir.Model) -> dict[str, str]:
    return differences(answers(model, SAMPLES), answers(other, SAMPLES))


def test_float_rounding_is_no_difference():
    other = FACTORS * np.float32(1 + 1e-5)
    assert differing_outputs(times(FACTORS), times(other)) == {}


def test_each_output_that_is_another_is_named():
    other = FACTORS.copy()
    other[0] -= 3
    apart = differing_outputs(times(FACTORS), times(other))
    assert set(apart) == {"y", "z"}
    assert apart["y"].startswith("SNR ") and apart["y"].endswith(" dB")
    assert apart["z"].endswith("% of integers equal")


def test_another_shape_is_named():
    model = graph_of([node("Neg", "x", "y")], {"x": (1, 6)})
    turned = graph_of([node("Transpose", "x", "y", perm=[1, 0])], {"x": (1, 6)})
    apart = differing_outputs(model, turned)
    assert apart == {"y": "another shape"}


@pytest.mark.parametrize(
    "numbers, difference",
    [
        ([1.0, 2.0], None),
        ([1.0, np.inf], "numbers that are not finite"),
        ([np.nan, 2.0], "numbers that are not finite"),
        ([1.0, 3.0], "SNR 7.0 dB"),
    ],
)
def test_an_output_of_numbers(numbers, difference):
    expected = {"y": np.array([1.0, 2.0], np.float32)}
    actual = {"y": np.array(numbers, np.float32)}
    wanted = {} if difference is None else {"y": difference}
    assert differences([expected] * 2, [actual] * 2) == wanted


def test_an_output_that_is_0_in_the_file():
    expected = {"y": np.zeros(3, np.float32)}
    assert differences([expected], [expected]) == {}
    actual = {"y": np.full(3, 100, np.float32)}
    assert differences([expected], [actual]) == {"y": "0 in the file alone"}


@pytest.mark.parametrize("is_right", [True, False])
def test_a_program_of_a_wrongly_rewritten_model_is_not_called_good(
    tmp_path, monkeypatch, is_right
):
    """Here the file is another one when it is read to be run."""
    proto = build([node("Mul", "x k", "y")], {"x": (1, 6)}, {"k": FACTORS})
    model, data = tmp_path / "m.onnx", tmp_path / "d.npz"
    onnx.save(proto, model)
    np.savez(data, x=X)
    real = project.load_to_run

    def another(config):
        loaded = real(config)
        weights = loaded.model.graph.initializers["k"]
        weights.const_value = ir.tensor(FACTORS * 1.1, name="k")
        return replace(loaded)

    if not is_right:
        monkeypatch.setattr(project, "load_to_run", another)
    words = ["convert", str(model), "--data", str(data)]
    result = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "p.cvm")])
    assert result.exit_code == 0, result.output
    facts = CliRunner().invoke(cli, [*words, "--json", "-q"])
    changed = json.loads(facts.stdout)["quality"].get("changed_by_rewriting")
    assert changed == (None if is_right else {"y": "SNR 20.8 dB"})
    (line,) = [
        text for text in result.output.splitlines() if "against float" in text
    ]
    assert line.endswith(": good" if is_right else ": look at it")
    warning = "output 'y' of the rewritten model is not that of the file (SNR 20.8 dB)"
    assert (warning in result.output) != is_right
