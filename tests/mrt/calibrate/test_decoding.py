"""Samples of a decoder from sequences of tokens: the steps of the float model, and what is refused."""

import numpy as np
import onnx_ir as ir
import pytest

from benchmarks.decoder_models import Shape, nanogpt, random_weights
from mrt.calibrate import decoding
from mrt.calibrate.decoding import StepInputs, lacks_states, open_steps
from mrt.errors import BadData
from mrt.graph.states import tie_states
from tests.support.graphs import graph_of, node

TOKENS = np.array([[1, 2, 0], [3, 3, 3]])


def summing():
    """present = past + token; the mask and the position are read, and change nothing."""
    model = graph_of(
        [
            node("Add", "past token", "present"),
            node("ReduceSum", "mask axes", "places"),
            node("Mul", "places position", "product"),
            node("Mul", "product zero", "nothing"),
            node("Add", "present nothing", "logits"),
        ],
        {"token": [1, 1], "position": [1, 1], "mask": [1, 3], "past": [1, 1]},
        {"axes": np.array([1]), "zero": 0.0},
        outputs="logits present",
    )
    tie_states(model, {"past": "present"}, {})
    return model


@pytest.fixture
def path(tmp_path):
    np.savez(tmp_path / "d.npz", tokens=TOKENS)
    return tmp_path / "d.npz"


def test_every_step_takes_the_states_that_the_step_before_gave(path):
    model = summing()
    inputs = StepInputs.of(model)
    samples = open_steps(path, model, inputs)
    columns = {
        name: [sample[name].reshape(-1).tolist() for sample in samples]
        for name in ("token", "position", "mask", "past")
    }
    assert columns == {
        "token": [[1], [2], [0], [3], [3], [3]],
        "position": [[0], [1], [2], [0], [1], [2]],
        "mask": [[0, 0, 1], [0, 1, 1], [1, 1, 1]] * 2,
        "past": [[0], [1], [3], [0], [3], [6]],
    }
    assert len(samples) == 6 and samples.names == tuple(inputs.shapes)


def test_some_steps_are_chosen_at_equal_distances(path):
    model = summing()
    samples = open_steps(path, model, StepInputs.of(model), 3)
    assert [float(s["past"][0, 0]) for s in samples] == [0, 3, 3]
    assert samples.name_of(1) == "step 2"


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros((2, 4), np.int64), "sequences of 4 tokens; the model has room for 3: cut them"),
        (np.zeros((2, 3), np.float32), "expected sequences of tokens, integers"),
        (np.zeros((2, 3, 1), np.int64), "expected sequences of tokens, integers"),
    ],
)  # fmt: skip
def test_what_is_no_sequence_of_tokens_is_refused(tmp_path, array, sentence):
    np.savez(tmp_path / "d.npz", tokens=array)
    model = summing()
    with pytest.raises(BadData, match=sentence):
        open_steps(tmp_path / "d.npz", model, StepInputs.of(model))


def test_more_samples_than_memory_is_meant_for_are_refused(path, monkeypatch):
    monkeypatch.setattr(decoding, "MOST_BYTES", 100)
    model = summing()
    with pytest.raises(BadData, match="--samples 4 or fewer"):
        open_steps(path, model, StepInputs.of(model))
    assert len(open_steps(path, model, StepInputs.of(model), 4)) == 4


def test_a_file_with_states_is_read_as_any_other(path, tmp_path):
    inputs = StepInputs.of(summing())
    assert lacks_states(path, inputs, {})
    np.savez(tmp_path / "s.npz", token=TOKENS, past=TOKENS)
    assert not lacks_states(tmp_path / "s.npz", inputs, {})
    assert not lacks_states(tmp_path, inputs, {})  # a folder


def test_a_model_is_stepped_through_only_if_every_input_is_known():
    shape = Shape(layers=1)
    proto = nanogpt(shape, random_weights(shape, gated=False))
    model = ir.from_proto(proto)
    assert StepInputs.of(model) is None  # no states are noted
    states = {f"past.0.{r}": f"present.0.{r}" for r in ("key", "value")}
    tie_states(model, states, {})
    inputs = StepInputs.of(model)
    assert (inputs.token, inputs.position) == ("token", "position")
    tie_states(model, dict(list(states.items())[:1]), {})
    assert StepInputs.of(model) is None  # nothing says what past.0.value is
