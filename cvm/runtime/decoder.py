"""A program as a decoder: which of its inputs are states, and the samples that it runs on, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from cvm.errors import BadInput, brief
from cvm.program import DTYPES, Input, IntArray, Meaning, Program
from cvm.program.decoder import (
    NAMES,
    Roles,
    find_name,
    mask_at,
    position_at,
    states_of,
)
from cvm.proof.validate import Proven

States = Mapping[str, IntArray]


USUAL_COUNT = 64  # tokens to generate, unless said


@dataclass(frozen=True)
class Decoder:
    """A proven program, the outputs that are states by the inputs that take them, and the roles of all others."""

    form: Proven
    states: Mapping[str, str]
    roles: Roles

    @staticmethod
    def of(form: Proven, given: Mapping[str, str | None]) -> Decoder:
        """The program with the roles found by name, or `given`; BadInput with the reason if it cannot generate."""
        unknown = sorted(given.keys() - NAMES.keys())
        if unknown:
            raise BadInput(
                f"'{unknown[0]}' is no role: the roles are {', '.join(NAMES)}"
            )
        program = form.program
        states = states_of(program)
        if not states:
            raise BadInput(
                "the program names no states, so a step cannot follow another: convert the model with "
                "--state past.0.key=present.0.key for each input that takes an output of the step before"
            )
        for name, output in states.items():
            _require_alike(form, name, output)
        decoder = Decoder(form, states, _roles(program, states, given))
        decoder._require_tokens()
        decoder._require_intervals()
        return decoder

    @property
    def vocabulary(self) -> int:
        """How many tokens the logits choose from."""
        return self.form.types[
            _output(self.form.program, self.roles.logits)
        ].elements

    @property
    def capacity(self) -> int | None:
        """How many tokens can be read: what the position can be, and the mask has room for; None if there is neither."""
        capacities: list[int] = []
        for port in self.form.program.inputs:
            if port.name == self.roles.position:
                capacities.append(port.hi + 1)
            if port.name == self.roles.mask:
                capacities.append(port.type.shape[-1])
        return min(capacities, default=None)

    def first_states(self) -> dict[str, IntArray]:
        """The states before the first token: the integer that stands for 0 in every place."""
        return {
            port.name: np.full(
                port.type.shape,
                _zero(self.form.program, port),
                DTYPES[port.type.dtype],
            )
            for port in self.form.program.inputs
            if port.name in self.states
        }

    def sample(
        self, step: int, token: int, states: States
    ) -> dict[str, IntArray]:
        """The inputs of one step."""
        inputs = dict(states)
        for port in self.form.program.inputs:
            shape, dtype = port.type.shape, DTYPES[port.type.dtype]
            if port.name == self.roles.token:
                inputs[port.name] = np.full(shape, token, dtype)
            elif port.name == self.roles.position:
                inputs[port.name] = position_at(step, shape).astype(dtype)
            elif port.name == self.roles.mask:
                inputs[port.name] = mask_at(step, shape).astype(dtype)
        return inputs

    def next_states(
        self, outputs: Mapping[str, IntArray]
    ) -> dict[str, IntArray]:
        """The states that a step's outputs are."""
        return {name: outputs[output] for name, output in self.states.items()}

    def next_token(self, outputs: Mapping[str, IntArray]) -> int:
        """The index of the greatest logit; among equals the lowest."""
        return int(outputs[self.roles.logits].argmax())

    def usual_count(self, prompt: int) -> int:
        """How many tokens are generated unless said: all that there is room for, at most 64."""
        room = self.capacity
        if room is None:
            return USUAL_COUNT
        return max(1, min(USUAL_COUNT, room - prompt + 1))

    def require(self, prompt: Sequence[int], count: int) -> None:
        """BadInput unless this prompt can be read and so many tokens can follow it."""
        least, most = self._tokens()
        if not prompt:
            raise BadInput("the prompt has no token; expected one or more")
        if count < 1:
            raise BadInput(f"{count} tokens to generate: expected 1 or more")
        for place, token in enumerate(prompt):
            if not least <= token <= most:
                raise BadInput(
                    f"token {brief(token)} at place {place} of the prompt: the program's tokens are {least}..{most}"
                )
        self._require_room(len(prompt), count)

    def _require_room(self, prompt: int, count: int) -> None:
        room, needed = self.capacity, prompt + count - 1
        if room is None or needed <= room:
            return
        if prompt > room:
            raise BadInput(
                f"the prompt has {prompt} tokens; the program has room for {room}: shorten it, "
                "or convert the model with a longer cache"
            )
        raise BadInput(
            f"{prompt} tokens of the prompt and {count} more: the program reads at most {room}; "
            f"after this prompt it can generate {room - prompt + 1}"
        )

    def _tokens(self) -> tuple[int, int]:
        port = _input(self.form.program, self.roles.token)
        return max(port.lo, 0), port.hi

    def _require_tokens(self) -> None:
        """BadInput if the program chooses tokens that it does not take."""
        least, most = self._tokens()
        if least > 0 or most < self.vocabulary - 1:
            raise BadInput(
                f"output '{self.roles.logits}' chooses from {self.vocabulary} tokens, but input "
                f"'{self.roles.token}' takes {least}..{most}"
            )

    def _require_intervals(self) -> None:
        """BadInput if a step would hold what lies outside an input's interval, which the proof does not cover.

        How far a position can go is its `capacity`.
        """
        program, roles = self.form.program, self.roles
        if roles.position:
            port = _input(program, roles.position)
            _require_takes(port, "position", 0, "the first position")
        if roles.mask:
            port = _input(program, roles.mask)
            _require_takes(port, "mask", 1, "for a place in use")
            if port.type.shape[-1] > 1:
                _require_takes(
                    port, "mask", 0, "for a place that is not in use"
                )


def _roles(
    program: Program, states: Mapping[str, str], given: Mapping[str, str | None]
) -> Roles:
    """The role of every input that is no state."""
    inputs = [i.name for i in program.inputs if i.name not in states]
    outputs = [port.name for port in program.outputs]
    by_role: dict[str, str | None] = {}
    for role in NAMES:
        names = outputs if role == "logits" else inputs
        by_role[role] = find_name(role, names, given.get(role))
        if given.get(role) and not by_role[role]:
            raise BadInput(
                f"--{role} {given[role]}: the program has {', '.join(names)}"
            )
    for role, names in (("token", inputs), ("logits", outputs)):
        if not by_role[role]:
            raise BadInput(
                f"which of {', '.join(names)} is the {role} is not known by its name: give --{role} NAME"
            )
    _require_one_role_each(by_role)
    used = {by_role[role] for role in ("token", "position", "mask")}
    unused = sorted({*inputs} - used)
    if unused:
        raise BadInput(
            f"input '{unused[0]}' has no role at a step: give --position or --mask {unused[0]}, "
            "or convert the model with it as a --state or a constant (--value)"
        )
    _require_sizes(program, by_role)
    roles = by_role["position"], by_role["mask"]
    return Roles(str(by_role["token"]), *roles, str(by_role["logits"]))


def _require_one_role_each(by_role: Mapping[str, str | None]) -> None:
    """BadInput for an input that has two roles."""
    for role, second_role in combinations(("token", "position", "mask"), 2):
        if by_role[role] and by_role[role] == by_role[second_role]:
            raise BadInput(
                f"input '{by_role[role]}' cannot be {role} and {second_role} at once"
            )


def _require_takes(port: Input, role: str, value: int, what: str) -> None:
    if not port.lo <= value <= port.hi:
        raise BadInput(
            f"input '{port.name}' takes {port.lo}..{port.hi}: as the {role} of a decoder it must take {value}, {what}"
        )


def _require_sizes(program: Program, by_role: Mapping[str, str | None]) -> None:
    for role in ("token", "position"):
        name = by_role[role]
        if name and prod(_input(program, name).type.shape) != 1:
            shape = list(_input(program, name).type.shape)
            raise BadInput(
                f"input '{name}' has the shape {shape}: a step reads one {role}"
            )
    mask = by_role["mask"]
    if mask and not _input(program, mask).type.shape:
        raise BadInput(f"input '{mask}' has no axis: a mask has one of places")


def _require_alike(form: Proven, name: str, output: str) -> None:
    """BadInput unless the output's integers are the input's: type, interval and meaning."""
    program = form.program
    where = f"state '{name}' = '{output}'"
    port, value = _input(program, name), _output(program, output)
    type_ = form.types[value]
    if type_ != port.type:
        raise BadInput(
            f"{where}: is {type_} going out and {port.type} coming in"
        )
    low, high = form.intervals[value]
    if low < port.lo or high > port.hi:
        raise BadInput(
            f"{where}: goes out within {low}..{high} and is taken within {port.lo}..{port.hi}"
        )
    input_meaning = _meaning(program, name)
    output_meaning = _meaning(program, output, going_out=True)
    if input_meaning.channels:
        raise BadInput(
            f"{where}: comes in with a scale for each column, and goes out with one"
        )
    if (input_meaning.scale, input_meaning.zero_point) != (
        output_meaning.scale,
        output_meaning.zero_point,
    ):
        raise BadInput(
            f"{where}: has scale {output_meaning.scale} and zero point {output_meaning.zero_point} going out, "
            f"{input_meaning.scale} and {input_meaning.zero_point} coming in"
        )


def _input(program: Program, name: str) -> Input:
    for port in program.inputs:
        if port.name == name:
            return port
    raise BadInput(f"state '{name}': the program has no input of this name")


def _output(program: Program, name: str) -> int:
    for port in program.outputs:
        if port.name == name:
            return port.value
    raise BadInput(f"state '{name}': the program has no output of this name")


def _meaning(
    program: Program, name: str, *, going_out: bool = False
) -> Meaning:
    assert program.metadata is not None
    meanings = (
        program.metadata.outputs if going_out else program.metadata.inputs
    )
    return meanings.get(name, Meaning(1.0, 0))


def _zero(program: Program, port: Input) -> int:
    """The integer nearest to the zero point that the input takes."""
    return min(max(_meaning(program, port.name).zero_point, port.lo), port.hi)
