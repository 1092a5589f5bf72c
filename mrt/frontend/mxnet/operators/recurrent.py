"""RNN: layers of LSTM, GRU or plain cells, whose parameters are one flat vector.

The vector holds the weights of all layers, then all biases. Within a layer they are
ordered by direction, then input before state, then by gate. ONNX has one node for each
layer, with the gates in another order.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from mrt.frontend.mxnet.graph_builder import Attributes, AttributeValue
from mrt.frontend.mxnet.operator_call import OperatorCall
from mrt.frontend.mxnet.operators.registry import (
    PARAMETERS_SLOT,
    Attribute,
    Values,
    all_inputs,
    boolean,
    choice,
    count,
    ignored,
    integer,
    operator,
    positive,
)
from mrt.frontend.mxnet.operators.slicing import slice_axes


@dataclass(frozen=True)
class _Mode:
    """The ONNX operator, and for each of its gates the index of that gate in MXNet."""

    name: str
    gates: tuple[int, ...]


MODES = {
    # input, forget, cell, output -> input, output, forget, cell
    "lstm": _Mode("LSTM", (0, 3, 1, 2)),
    # reset, update, new -> update, reset, new
    "gru": _Mode("GRU", (1, 0, 2)),
    "rnn_tanh": _Mode("RNN", (0,)),
    "rnn_relu": _Mode("RNN", (0,)),
}
ONLY_NONE = Attribute(str.strip, only=(None,), none_allowed=True)


@operator(
    "_rnn_param_concat",
    attributes={"num_args": count(), "dim": integer(1)},
    slots=all_inputs,
)
def rnn_param_concat(call: OperatorCall) -> ir.Value:
    """Join parameters."""
    return call.add("Concat", *call.inputs, axis=call.axis_attribute("dim"))


def _slots(values: Values) -> tuple[str, ...]:
    states = ("state", "state_cell") if values["mode"] == "lstm" else ("state",)
    return ("data", PARAMETERS_SLOT, *states)


def _outputs(values: Values) -> int:
    if not values["state_outputs"]:
        return 1
    return 3 if values["mode"] == "lstm" else 2


@operator(
    "RNN",
    attributes={
        "state_size": positive(),
        "num_layers": count(),
        "bidirectional": boolean(False),
        "mode": choice(*MODES, required=True),
        "state_outputs": boolean(False),
        "projection_size": ONLY_NONE,
        "lstm_state_clip_min": ONLY_NONE,
        "lstm_state_clip_max": ONLY_NONE,
        "use_sequence_length": boolean(False, only=(False,)),
        **ignored("p", "lstm_state_clip_nan"),
    },
    slots=_slots,
    outputs=_outputs,
)
def rnn(call: OperatorCall) -> list[ir.Value]:
    """Write the layers: (time, batch, features) -> (time, batch, directions * state_size).

    The last states of all layers follow, if state_outputs is set.
    """
    call.require_rank(3, 3)
    layers = _Layers(call)
    value = call.data
    last_states = []
    for index in range(call.int_attribute("num_layers")):
        value, *states = layers.add(value, index)
        last_states.append(states)
    if not call.bool_attribute("state_outputs"):
        return [value]
    joined = [
        call.add("Concat", *states, axis=0)
        for states in zip(*last_states, strict=True)
    ]
    return [value, *joined]


class _Layers:
    """The layers of one RNN node, and the slices of its vector and states that each reads."""

    def __init__(self, call: OperatorCall) -> None:
        self.call = call
        self.mode = MODES[call.string_attribute("mode")]
        self.size = call.int_attribute("state_size")
        self.directions = 2 if call.bool_attribute("bidirectional") else 1
        self.rows = self.size * len(self.mode.gates)
        _, self.batch, self.features = call.shape()
        layers = call.int_attribute("num_layers")
        self.first_bias = self._number_of_weights(layers)
        biases = layers * self.directions * 2 * self.rows
        self.vector = call.parameter(1, (self.first_bias + biases,))
        shape = (layers * self.directions, self.batch, self.size)
        self.states = [self._state(value, shape) for value in call.inputs[2:]]

    def _state(
        self, value: ir.Value, expected: tuple[int, int, int]
    ) -> ir.Value:
        """Return a state for the entire batch; a state of one sample is repeated.

        A file that leaves the batch unknown has a state of batch 1.
        """
        shape = self.call.shape(value)
        if shape == expected:
            return value
        if shape == (expected[0], 1, expected[2]):
            target = self.call.constant(list(expected))
            return self.call.add("Expand", value, target)
        self.call.refuse(
            f"input {value.name!r} has shape {shape}; expected {expected}"
        )

    def _input_size(self, layer: int) -> int:
        return self.features if layer == 0 else self.size * self.directions

    def _number_of_weights(self, layers: int) -> int:
        """Return the number of elements that the weights of the first layers take in the vector."""
        if layers == 0:
            return 0
        first = self.features + self.size
        each_other = self.size * self.directions + self.size
        columns = first + (layers - 1) * each_other
        return self.directions * self.rows * columns

    def add(self, value: ir.Value, layer: int) -> list[ir.Value]:
        """Add a layer; return its output and its last states."""
        call = self.call
        operator = self.mode.name
        input_weight = self._weight(layer, recurrent=False)
        state_weight = self._weight(layer, recurrent=True)
        first = layer * self.directions
        own_states = {0: slice(first, first + self.directions)}
        states = [slice_axes(call, own_states, state) for state in self.states]
        output, *last_states = call.add_all(
            operator,
            value,
            input_weight,
            state_weight,
            self._bias(layer),
            None,  # lengths of the sequences
            *states,
            outputs=3 if operator == "LSTM" else 2,
            **self._attributes(),
        )
        time = call.shape(output)[0]
        batch_first = call.transpose(output, [0, 2, 1, 3])
        features = self.directions * self.size
        joined = call.reshape(batch_first, [time, self.batch, features])
        return [joined, *last_states]

    def _attributes(self) -> Attributes:
        attributes: dict[str, AttributeValue] = {
            "hidden_size": self.size,
            "direction": "bidirectional" if self.directions == 2 else "forward",
            "layout": 0,
        }
        if self.mode.name == "GRU":
            attributes["linear_before_reset"] = 1
        if self.mode.name == "RNN":
            is_relu = self.call.string_attribute("mode") == "rnn_relu"
            activation = "Relu" if is_relu else "Tanh"
            attributes["activations"] = [activation] * self.directions
        return attributes

    def _weight(self, layer: int, *, recurrent: bool) -> ir.Value:
        """Return [directions, gates * state_size, columns], for the input or for the state."""
        input_size = self._input_size(layer)
        columns = self.size if recurrent else input_size
        start = self._number_of_weights(layer)
        if recurrent:
            start += self.rows * input_size
        step = self.rows * (input_size + self.size)
        gates = []
        for direction in range(self.directions):
            gates += self._gates(start + direction * step, self.size * columns)
        joined = self.call.add("Concat", *gates, axis=0)
        return self.call.reshape(joined, [self.directions, self.rows, columns])

    def _bias(self, layer: int) -> ir.Value:
        """Return [directions, 2 * gates * state_size]: for the input, then for the state."""
        start = self.first_bias + layer * self.directions * 2 * self.rows
        gates = []
        for index in range(self.directions * 2):
            gates += self._gates(start + index * self.rows, self.size)
        joined = self.call.add("Concat", *gates, axis=0)
        return self.call.reshape(joined, [self.directions, 2 * self.rows])

    def _gates(self, start: int, length: int) -> list[ir.Value]:
        """Return one slice of the vector for each gate, in ONNX's order."""
        slices = []
        for gate in self.mode.gates:
            begin = start + gate * length
            bounds = {0: slice(begin, begin + length)}
            slices.append(slice_axes(self.call, bounds, self.vector))
        return slices
