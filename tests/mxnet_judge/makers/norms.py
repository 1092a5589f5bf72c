"""Normalisations by what they see, and recurrent layers."""

from __future__ import annotations

from tests.mxnet_judge.draw import OMIT, Draw
from tests.mxnet_judge.makers.registry import Drawn, maker
from tests.mxnet_judge.sketch import Parameter

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


@maker("L2Normalization", cases=18)
def l2_normalization(draw: Draw, name: str) -> Drawn:
    mode = draw.maybe("instance", "channel", "spatial")
    shape = draw.shape(2 if mode in (OMIT, "instance") else 3, 4)
    return Drawn(
        [draw.data(shape)], {"eps": draw.maybe(1e-5, 0.5), "mode": mode}
    )


@maker("InstanceNorm", cases=14)
def instance_norm(draw: Draw, name: str) -> Drawn:
    shape = draw.one(draw.image(1), draw.image(2), draw.image(2), draw.image(3))
    scales = [Parameter(draw.data((shape[1],))) for _ in range(2)]
    return Drawn([draw.data(shape), *scales], {"eps": draw.maybe(1e-5, 0.1)})


@maker("GroupNorm", cases=14)
def group_norm(draw: Draw, name: str) -> Drawn:
    groups = draw.integer(1, 3)
    shape = draw.image(channels=groups * draw.integer(1, 3))
    scales = [Parameter(draw.data((groups,))) for _ in range(2)]
    attributes = {
        "num_groups": groups if groups > 1 else draw.maybe(1),
        "eps": draw.maybe(1e-3, 0.1),
    }
    if draw.chance(0.2):
        attributes["output_mean_var"] = False
    return Drawn([draw.data(shape), *scales], attributes)


@maker("LayerNorm", cases=18)
def layer_norm(draw: Draw, name: str) -> Drawn:
    shape = draw.shape(1, 4, 6)
    axis = draw.maybe(-1, draw.axis(len(shape)))
    size = shape[-1 if axis is OMIT else axis]
    attributes = {"axis": axis, "eps": draw.maybe(1e-3, 0.1)}
    if draw.chance(0.2):
        attributes["output_mean_var"] = False
    return Drawn(
        [draw.data(shape), *(Parameter(draw.data((size,))) for _ in range(2))],
        attributes,
    )


@maker("LRN", cases=18)
def lrn(draw: Draw, name: str) -> Drawn:
    attributes = {
        "nsize": draw.one(1, 3, 5),
        "alpha": draw.maybe(0.001, 0.5),
        "beta": draw.maybe(0.5, 1.0),
        "knorm": draw.maybe(1.0, 3.0),
    }
    return Drawn([draw.data(draw.image())], attributes)


@maker("RNN", cases=40)
def rnn(draw: Draw, name: str) -> Drawn:
    """All weights in one vector, as MXNet packs them: those of each layer and direction, then all biases."""
    mode = draw.one(*GATES)
    layers = draw.integer(1, 2)
    both = draw.maybe(True, False)
    length, batch, width, hidden = (draw.integer(1, 4) for _ in range(4))
    directions = 2 if both is True else 1
    size = 0
    for layer in range(layers):
        inputs = width if layer == 0 else hidden * directions
        size += directions * GATES[mode] * hidden * (inputs + hidden + 2)
    states = draw.maybe(True, False)
    attributes = {
        "state_size": hidden,
        "num_layers": layers,
        "mode": mode,
        "bidirectional": both,
        "state_outputs": states,
        "p": draw.maybe(0.5) if draw.chance(0.2) else OMIT,
        "projection_size": None if draw.chance(0.1) else OMIT,
        "use_sequence_length": False if draw.chance(0.1) else OMIT,
    }
    if mode == "lstm" and draw.chance(0.15):
        attributes |= {
            "lstm_state_clip_min": -0.5,
            "lstm_state_clip_max": 0.5,
            "lstm_state_clip_nan": draw.maybe(False),
        }
    elif mode == "lstm" and draw.chance(0.2):
        attributes["lstm_state_clip_nan"] = False
    state = (layers * directions, batch, hidden)
    begin = [draw.data(state) for _ in range(2 if mode == "lstm" else 1)]
    outputs = 1 if states is not True else 3 if mode == "lstm" else 2
    return Drawn(
        [
            draw.data((length, batch, width)),
            Parameter(draw.data((size,))),
            *begin,
        ],
        attributes,
        outputs,
    )
