"""The file's model and the rewritten one are compared once for each float graph, whatever its bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import mrt
from mrt import project, quality
from mrt.config import Config, ModelSettings
from mrt.errors import BadModel
from mrt.quality import ChosenSamples, RewritingCheck
from mrt.quantize import QuantizeOptions
from mrt.refine.options import RefineOptions
from tests.mrt.test_automatic_bits import FAR, difference
from tests.support.graphs import build, node

CHANGED = {"y": "SNR 20.8 dB"}
OF_BITS = {
    "8": {},
    "16 bits of values": {"activation_bits": 16, "product_bits": 16},
    "bits of weights": {"weight_bits": 15},
    "streams": {"stream_bits": 16},
    "scales": {"scales": "shift"},
}


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[ChosenSamples]:
    """The samples of each look at a model; each finds a change."""
    seen: list[ChosenSamples] = []

    def look(samples: ChosenSamples, actual: object) -> dict[str, str]:
        seen.append(samples)
        return CHANGED

    monkeypatch.setattr(quality, "_changed_by_rewriting", look)
    return seen


def chosen_samples(config: Config, places: tuple[int, ...]) -> ChosenSamples:
    nothing: Any = None
    return ChosenSamples(nothing, config, config.calibration_data, places)


def test_conversions_that_choose_bits_look_once(
    tmp_path: Path, looked_at: list[ChosenSamples]
) -> None:
    x = np.random.default_rng(1).normal(size=(48, 6)).astype(np.float32)
    model = difference(tmp_path / "far.onnx", size=FAR)
    conversion = mrt.convert(model, x).conversion
    assert conversion.chosen
    assert conversion.quality.changed_by_rewriting == CHANGED
    assert len(looked_at) == 1
    mrt.convert(model, x, bits=8)
    assert len(looked_at) == 2  # another job


@pytest.mark.parametrize("options", OF_BITS.values(), ids=OF_BITS)
def test_bits_stages_and_places_are_no_reason_to_look_again(
    options: dict[str, Any], looked_at: list[ChosenSamples]
) -> None:
    check, config = RewritingCheck(), Config()
    check.changes(chosen_samples(config, (0, 1)), (), {})
    other = replace(
        config,
        quantization=replace(config.quantization, **options),
        refinement=RefineOptions.of(["fit"]),
        calibration=replace(config.calibration, bits=5),
    )
    assert (
        check.changes(chosen_samples(other, (2,)), (), {}).of_outputs == CHANGED
    )
    assert len(looked_at) == 1


@pytest.mark.parametrize(
    "changes, duplicates",
    [
        ({"model": ModelSettings(outputs=("z",))}, {}),
        ({"preprocessing": {"input_dtype": "u8"}}, {}),
        ({"quantization": QuantizeOptions(requantize=True)}, {}),
        ({}, {"conv": [3]}),
    ],
    ids=["outputs", "bytes", "requantized", "duplicates"],
)
def test_another_float_graph_is_looked_at(
    changes: dict[str, Any],
    duplicates: dict[str, list[int]],
    looked_at: list[ChosenSamples],
) -> None:
    check, config = RewritingCheck(), Config()
    if preparing := changes.get("preprocessing"):
        step = replace(config.preprocessing, **preparing)
        changes = {"preprocessing": step}
    check.changes(chosen_samples(config, (0, 1)), (), {})
    other = replace(config, **changes)
    for _ in range(2):
        check.changes(chosen_samples(other, (0, 1)), (), duplicates)
    assert len(looked_at) == 2


def test_a_file_that_does_not_run_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(samples: ChosenSamples, actual: object) -> dict[str, str]:
        raise BadModel("the float model cannot be run: no kernel")

    monkeypatch.setattr(quality, "_changed_by_rewriting", look)
    nodes = [node("Relu", "x", "y")]
    onnx.save(build(nodes, {"x": (1, 6)}), tmp_path / "m.onnx")
    x = np.random.default_rng(1).normal(size=(48, 6)).astype(np.float32)
    measured = mrt.convert(tmp_path / "m.onnx", x).conversion.quality
    assert measured.verdict is not None and measured.verdict.is_good
    (note,) = measured.notes()
    assert "compared with the rewritten model alone" in note
    assert note.endswith("the float model cannot be run: no kernel")


def test_another_float_graph_that_runs_has_no_such_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look(samples: ChosenSamples, actual: Sequence[str]) -> dict[str, str]:
        if not actual:
            raise BadModel("no kernel")
        return {}

    monkeypatch.setattr(quality, "_changed_by_rewriting", look)
    check, samples = RewritingCheck(), chosen_samples(Config(), (0, 1))
    runs: Any = ["answers"]
    assert check.changes(samples, (), {}).not_compared == "no kernel"
    assert not check.changes(samples, runs, {"conv": [3]}).not_compared
    assert check.changes(samples, runs, {}).not_compared == "no kernel"


def test_bits_change_nothing_of_the_rewritten_float_graph(
    tmp_path: Path,
) -> None:
    """What the check relies on."""
    path = tmp_path / "m.onnx"
    weights = np.ones((3, 6), np.float32)
    nodes = [
        node("Gemm", "x w", "a", transB=1),
        node("Softmax", "a", "b"),
        node("LayerNormalization", "b s", "y"),
    ]
    scale = np.ones(3, np.float32)
    onnx.save(build(nodes, {"x": (1, 6)}, {"w": weights, "s": scale}), path)
    rewritten = project.rewritten(Config(model=ModelSettings(path=path)))
    graphs = {ir.to_proto(rewritten.model).SerializeToString()}
    x = np.random.default_rng(1).normal(size=(8, 6)).astype(np.float32)
    for options in ({"bits": 8}, *OF_BITS.values()):
        conversion = mrt.convert(path, x, **options).conversion
        proto = ir.to_proto(conversion.model.model)
        graphs.add(proto.SerializeToString())
    assert len(graphs) == 1
