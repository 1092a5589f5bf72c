"""lower_lstm_gru_rnn: every form of LSTM, GRU and RNN keeps its meaning when unrolled, and what cannot be is named."""

import re

import numpy as np
import pytest

from mrt.errors import Unsupported
from mrt.rewrite import rewrite
from mrt.rewrite.recurrent.lstm_gru_rnn import lower_lstm_gru_rnn
from tests.support.graphs import (
    assert_plain,
    assert_same,
    graph_of,
    node,
    operators_of,
    run,
    seeded,
    shapes_of,
)

STEPS, BATCH, INPUTS, HIDDEN = 5, 2, 3, 4
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OUTPUTS = {"LSTM": "y h c", "GRU": "y h", "RNN": "y h"}
STEPS_OF_ROUNDING = 5e-6  # a few roundings for each of five steps


def weights(
    operator: str, directions: int, seed: int = 0
) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = GATES[operator] * HIDDEN
    shapes = {
        "w": (directions, rows, INPUTS),
        "r": (directions, rows, HIDDEN),
        "b": (directions, 2 * rows),
    }
    return {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def case(
    operator: str, directions: int = 1, operands: str = "x w r b", **attributes
):
    shapes = {"x": (STEPS, BATCH, INPUTS)}
    state = (directions, BATCH, HIDDEN)
    shapes |= {name: state for name in ("h0", "c0") if name in operands.split()}
    arrays = weights(operator, directions)
    arrays |= {
        "lengths": np.full(BATCH, STEPS, np.int32),
        "zeros": np.zeros(state, np.float32),
    }
    arrays |= {
        "k0": np.full(state, 0.5, np.float32),
        "p": arrays["b"][:, : 3 * HIDDEN] / 2,
    }
    arrays = {
        name: array
        for name, array in arrays.items()
        if name in operands.split()
    }
    one = node(
        operator, operands, OUTPUTS[operator], hidden_size=HIDDEN, **attributes
    )
    return graph_of([one], shapes, arrays, outputs=OUTPUTS[operator])


FORMS = {
    **{f"{name} {direction}": (name, {"direction": direction}) for name in GATES for direction in ("forward", "reverse")},
    **{f"{name} both ways": (name, {"directions": 2, "direction": "bidirectional"}) for name in GATES},
    **{f"{name} without biases": (name, {"operands": "x w r"}) for name in GATES},
    **{f"{name} from a computed state": (name, {"operands": "x w r b - h0"}) for name in GATES},
    **{f"{name} from a constant state": (name, {"operands": "x w r b lengths k0"}) for name in GATES},
    **{f"{name} from zeros": (name, {"operands": "x w r b - zeros"}) for name in GATES},
    **{f"{name} clipped": (name, {"operands": "x w r b - h0", "clip": 0.75}) for name in GATES},
    "GRU clipped, reset behind": ("GRU", {"operands": "x w r b - h0", "clip": 0.5, "linear_before_reset": 1}),
    "LSTM clipped, with peepholes": ("LSTM", {"operands": "x w r b - h0 c0 p", "clip": 0.75}),
    "LSTM from two states, both ways": ("LSTM", {"operands": "x w r b - h0 c0", "directions": 2,
                                                 "direction": "bidirectional"}),
    "LSTM with peepholes": ("LSTM", {"operands": "x w r b - h0 c0 p"}),
    "LSTM with peepholes from zeros": ("LSTM", {"operands": "x w r b - - - p"}),
    "GRU, reset behind": ("GRU", {"linear_before_reset": 1}),
    "GRU, reset behind, from a state": ("GRU", {"linear_before_reset": 1, "operands": "x w r b - h0"}),
    "GRU, reset behind, both ways": ("GRU", {"linear_before_reset": 1, "directions": 2, "direction": "bidirectional"}),
    **{f"RNN {name}": ("RNN", {"activations": [name]})
       for name in ("Relu", "Sigmoid", "Softsign", "Softplus", "Elu", "LeakyRelu", "HardSigmoid")},
    "RNN of two functions and their numbers": (
        "RNN", {"directions": 2, "direction": "bidirectional", "activations": ["ScaledTanh", "HardSigmoid"],
                "activation_alpha": [1.5, 0.3], "activation_beta": [0.5, 0.4]}),
    "RNN affine": ("RNN", {"activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.25]}),
    "LSTM of other functions": ("LSTM", {"activations": ["HardSigmoid", "Softsign", "Relu"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_unrolled_it_reaches_canonical_form_and_keeps_the_meaning(name):
    operator, form = FORMS[name]
    model = case(operator, **form)
    feeds = seeded(shapes_of(model))
    before = run(model, feeds)
    rewrite(model)
    assert_same(before, run(model, feeds), STEPS_OF_ROUNDING)


@pytest.mark.parametrize("operator", GATES)
def test_batches_first_is_the_same_with_two_axes_exchanged(operator):
    operands = "x w r b - h0"
    model = case(operator, 2, operands, direction="bidirectional")
    feeds = seeded(shapes_of(model))
    expected = run(model, feeds)
    turned = graph_of(
        [
            node(
                operator,
                operands,
                "y h",
                hidden_size=HIDDEN,
                direction="bidirectional",
                layout=1,
            )
        ],
        {"x": (BATCH, STEPS, INPUTS), "h0": (BATCH, 2, HIDDEN)},
        weights(operator, 2),
        outputs="y h",
    )
    rewrite(turned)
    found = run(
        turned, {name: array.swapaxes(0, 1) for name, array in feeds.items()}
    )
    assert_same(
        {
            "y": expected["y"].transpose(2, 0, 1, 3),
            "h": expected["h"].swapaxes(0, 1),
        },
        found,
        STEPS_OF_ROUNDING,
    )


def test_steps_share_one_initializer_for_each_parameter():
    model = case("LSTM", operands="x w r b - h0 c0")
    assert lower_lstm_gru_rnn(model) == 1
    products = [entry for entry in model.graph if entry.op_type == "Gemm"]
    of_all_steps, *of_states = products
    assert of_all_steps.inputs[0].name == "y.reshape"
    assert len(of_states) == STEPS
    assert len({entry.inputs[1] for entry in of_states}) == 1
    assert_plain(model)


def test_an_output_that_nobody_reads_is_not_made():
    one = node("GRU", "x w r b", "y h", hidden_size=HIDDEN)
    model = graph_of(
        [one], {"x": (STEPS, BATCH, INPUTS)}, weights("GRU", 1), outputs="h"
    )
    rewrite(model)
    assert "Concat" not in operators_of(model)


@pytest.mark.parametrize(
    ("operator", "form", "sentence"),
    [
        (
            "LSTM",
            {"clip": -3.0},
            "LSTM:y (LSTM): clip=-3.0; expected more than 0",
        ),
        (
            "LSTM",
            {"input_forget": 1},
            "LSTM:y (LSTM): input_forget=1; expected 0",
        ),
        (
            "RNN",
            {"activations": ["ThresholdedRelu"]},
            "RNN:y (RNN): activation ThresholdedRelu; expected one of Affine, ",
        ),
        (
            "GRU",
            {"activations": ["Tanh"]},
            "GRU:y (GRU): 1 activations; expected 2",
        ),
    ],
)
def test_what_is_not_supported_is_named(operator, form, sentence):
    with pytest.raises(Unsupported) as caught:
        rewrite(case(operator, **form))
    assert sentence in str(caught.value)


def test_sequences_of_different_lengths_are_refused():
    arrays = {**weights("RNN", 1), "lengths": np.array([5, 4], np.int32)}
    one = node("RNN", "x w r b lengths", "y", hidden_size=HIDDEN)
    with pytest.raises(
        Unsupported,
        match="sequences of different lengths, 4 to 5 steps; expected all 5 steps of each",
    ):
        rewrite(graph_of([one], {"x": (STEPS, BATCH, INPUTS)}, arrays))


def test_computed_lengths_name_their_input_and_the_option_that_fixes_it():
    nodes = [
        node("ReduceMax", "n", "longest"),
        node("Cast", "longest", "lengths", to=6),
        node("RNN", "x w r b lengths", "y", hidden_size=HIDDEN),
    ]
    shapes = {"x": (STEPS, BATCH, INPUTS), "n": (BATCH,)}
    with pytest.raises(
        Unsupported,
        match=r"RNN:y \(RNN\): the lengths of its sequences are computed from input 'n'; "
        "expected all 5 steps of each: --value n=5 makes it a constant, so that each sequence is read to its end, padding too, "
        "and the program does not ask for 'n'",
    ):
        rewrite(graph_of(nodes, shapes, weights("RNN", 1)))


def test_more_steps_than_may_be_unrolled_are_refused():
    one = node("RNN", "x w r b", "y", hidden_size=HIDDEN)
    model = graph_of([one], {"x": (1025, BATCH, INPUTS)}, weights("RNN", 1))
    with pytest.raises(
        Unsupported, match="1025 steps; at most 1024 are unrolled"
    ):
        rewrite(model)


@pytest.mark.parametrize("directions", [0, 1])
def test_another_direction_is_refused(directions):
    with pytest.raises(
        Unsupported,
        match="direction=sideways; expected forward, reverse, bidirectional",
    ):
        rewrite(case("RNN", directions, direction="sideways"))


@pytest.mark.parametrize("computed", ["w", "r"])
def test_computed_weights_are_refused(computed):
    arrays = weights("RNN", 1)
    shapes = {
        "x": (STEPS, BATCH, INPUTS),
        computed: arrays.pop(computed).shape,
    }
    one = node("RNN", "x w r b", "y", hidden_size=HIDDEN)
    with pytest.raises(
        Unsupported, match="its weights are computed; expected constants"
    ):
        rewrite(graph_of([one], shapes, arrays))


@pytest.mark.parametrize("name", ["w", "r"])
@pytest.mark.parametrize("rows", [HIDDEN - 1, HIDDEN + 1])
def test_weights_of_another_shape_are_refused(name, rows):
    arrays = weights("RNN", 1)
    width = arrays[name].shape[2]
    arrays[name] = np.ones((1, rows, width), np.float32)
    one = node("RNN", "x w r b", "y", hidden_size=HIDDEN)
    model = graph_of([one], {"x": (STEPS, BATCH, INPUTS)}, arrays)
    with pytest.raises(Unsupported, match="do not fit its operand"):
        rewrite(model)


@pytest.mark.parametrize(
    ("place", "role", "shape"),
    [
        (5, "initial_h", (1, BATCH, 2 * HIDDEN)),
        (6, "initial_c", (1, BATCH, 1)),
        (6, "initial_c", (1, 1, HIDDEN)),
        (5, "initial_h", (2, BATCH, HIDDEN)),
    ],
)
@pytest.mark.parametrize("fill", [0.0, 1.0])
def test_states_of_another_shape_are_refused(place, role, shape, fill):
    """Zeros too: onnxruntime refuses such a file, and nobody can tell what it means."""
    operands = ["x", "w", "r", "b", "-", "-", "-"]
    operands[place] = "state"
    arrays = weights("LSTM", 1) | {"state": np.full(shape, fill, np.float32)}
    one = node("LSTM", " ".join(operands), "y", hidden_size=HIDDEN)
    model = graph_of([one], {"x": (STEPS, BATCH, INPUTS)}, arrays)
    expected = re.escape(
        f"its {role} is {list(shape)}; expected {[1, BATCH, HIDDEN]}"
    )
    with pytest.raises(Unsupported, match=expected):
        rewrite(model)
