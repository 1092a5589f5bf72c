"""RNN: layers of LSTM, GRU or plain cells, whose parameters are one flat vector.

The vector holds the weights of all layers, then all biases; of a layer, direction by direction, for the input and then
for the state; of a weight, gate by gate. ONNX wants the same gates in another order, in one node for each layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from mrt.frontend.mxnet.graph_builder import Attributes
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
    """The ONNX operator, and for each of its gates the place of that gate in MXNet."""

    name: str
    gates: tuple[int, ...]


MODES = {
    "lstm": _Mode(
        "LSTM", (0, 3, 1, 2)
    ),  # input, forget, cell, output -> input, output, forget, cell
    "gru": _Mode("GRU", (1, 0, 2)),  # reset, update, new -> update, reset, new
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
    """Concat, of parameters."""
    return call.add("Concat", *call.inputs, axis=call.axis(call.int_attribute("dim")))


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
    """(time, batch, features) -> (time, batch, directions * state_size), then the last states of all layers."""
    call.require_rank(3, 3)
    layers = _Layers(call)
    value, last = call.data, []
    for index in range(call.int_attribute("num_layers")):
        value, *states = layers.emit(value, index)
        last.append(states)
    if not call.bool_attribute("state_outputs"):
        return [value]
    return [value, *(_joined(call, list(states)) for states in zip(*last, strict=True))]


def _joined(call: OperatorCall, values: list[ir.Value]) -> ir.Value:
    return call.add("Concat", *values, axis=0)


class _Layers:
    """One use of RNN: where each part of its vector and of its states is."""

    def __init__(self, call: OperatorCall) -> None:
        self.call = call
        self.mode = MODES[call.string_attribute("mode")]
        self.size = call.int_attribute("state_size")
        self.directions = 2 if call.bool_attribute("bidirectional") else 1
        self.rows = self.size * len(self.mode.gates)
        _, self.batch, self.features = call.shape()
        layers = call.int_attribute("num_layers")
        self.first_bias = self._weights_before(layers)
        total = self.first_bias + layers * self.directions * 2 * self.rows
        self.vector = call.parameter(1, (total,))
        stacked = (layers * self.directions, self.batch, self.size)
        self.states = [self._state(value, stacked) for value in call.inputs[2:]]

    def _state(self, value: ir.Value, wanted: tuple[int, int, int]) -> ir.Value:
        """A state of which the file does not know the batch has one of 1, which is repeated."""
        found = self.call.shape(value)
        if found == (wanted[0], 1, wanted[2]) != wanted:
            return self.call.add("Expand", value, self.call.constant(list(wanted)))
        self.call.require(
            found == wanted,
            f"input {value.name!r} has shape {found}; expected {wanted}",
        )
        return value

    def _width(self, layer: int) -> int:
        return self.features if layer == 0 else self.size * self.directions

    def _weights_before(self, layer: int) -> int:
        deeper = max(layer - 1, 0) * (self.size * self.directions + self.size)
        columns = self.features + self.size + deeper if layer else 0
        return self.directions * self.rows * columns

    def emit(self, value: ir.Value, layer: int) -> list[ir.Value]:
        """The output of a layer and its last states."""
        call, name = self.call, self.mode.name
        weights = [
            self._weight(layer, recurrent=recurrent) for recurrent in (False, True)
        ]
        first = layer * self.directions
        states = [
            slice_axes(call, {0: slice(first, first + self.directions)}, state)
            for state in self.states
        ]
        operands = [value, *weights, self._bias(layer), None, *states]
        y, *last = call.add_all(
            name, *operands, **self._attributes(), outputs=3 if name == "LSTM" else 2
        )
        steps = call.shape(y)[0]
        across = call.add("Transpose", y, perm=[0, 2, 1, 3])
        return [
            call.reshape(across, [steps, self.batch, self.directions * self.size]),
            *last,
        ]

    def _attributes(self) -> Attributes:
        direction = "bidirectional" if self.directions == 2 else "forward"
        fixed: dict[str, int | str | list[str]] = {
            "hidden_size": self.size,
            "direction": direction,
            "layout": 0,
        }
        if self.mode.name == "GRU":
            fixed["linear_before_reset"] = 1
        if self.mode.name == "RNN":
            activation = (
                "Relu" if self.call.string_attribute("mode") == "rnn_relu" else "Tanh"
            )
            fixed["activations"] = [activation] * self.directions
        return fixed

    def _weight(self, layer: int, *, recurrent: bool) -> ir.Value:
        """[directions, gates * state_size, columns], for the input or for the state."""
        width = self._width(layer)
        columns = self.size if recurrent else width
        begin = self._weights_before(layer) + (self.rows * width if recurrent else 0)
        step = self.rows * (width + self.size)
        pieces = [
            piece
            for direction in range(self.directions)
            for piece in self._gates(begin + direction * step, self.size * columns)
        ]
        return self.call.reshape(
            _joined(self.call, pieces), [self.directions, self.rows, columns]
        )

    def _bias(self, layer: int) -> ir.Value:
        """[directions, 2 * gates * state_size]: for the input, then for the state."""
        begin = self.first_bias + layer * self.directions * 2 * self.rows
        parts = range(begin, begin + self.directions * 2 * self.rows, self.rows)
        pieces = [piece for part in parts for piece in self._gates(part, self.size)]
        return self.call.reshape(
            _joined(self.call, pieces), [self.directions, 2 * self.rows]
        )

    def _gates(self, begin: int, length: int) -> list[ir.Value]:
        """As many slices of the vector as there are gates, in ONNX's order."""
        starts = [begin + gate * length for gate in self.mode.gates]
        return [
            slice_axes(self.call, {0: slice(start, start + length)}, self.vector)
            for start in starts
        ]
