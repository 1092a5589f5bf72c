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
        found: list[int] = []
        for item in self.form.program.inputs:
            if item.name == self.roles.position:
                found.append(item.hi + 1)
            if item.name == self.roles.mask:
                found.append(item.type.shape[-1])
        return min(found, default=None)

    def first_states(self) -> dict[str, IntArray]:
        """The states before the first token: the integer that stands for 0 in every place."""
        return {
            item.name: np.full(
                item.type.shape,
                _zero(self.form.program, item),
                DTYPES[item.type.dtype],
            )
            for item in self.form.program.inputs
            if item.name in self.states
        }

    def sample(
        self, step: int, token: int, states: States
    ) -> dict[str, IntArray]:
        """The inputs of one step."""
        made = dict(states)
        for item in self.form.program.inputs:
            shape, dtype = item.type.shape, DTYPES[item.type.dtype]
            if item.name == self.roles.token:
                made[item.name] = np.full(shape, token, dtype)
            elif item.name == self.roles.position:
                made[item.name] = position_at(step, shape).astype(dtype)
            elif item.name == self.roles.mask:
                made[item.name] = mask_at(step, shape).astype(dtype)
        return made

    def next_states(
        self, outputs: Mapping[str, IntArray]
    ) -> dict[str, IntArray]:
        """The states that a step's outputs are."""
        return {name: outputs[output] for name, output in self.states.items()}

    def next_token(self, outputs: Mapping[str, IntArray]) -> int:
        """The index of the greatest logit; among equals the lowest."""
        return int(outputs[self.roles.logits].argmax())

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
        item = _input(self.form.program, self.roles.token)
        return max(item.lo, 0), item.hi

    def _require_tokens(self) -> None:
        """BadInput if the program chooses tokens that it does not take."""
        least, most = self._tokens()
        if least > 0 or most < self.vocabulary - 1:
            raise BadInput(
                f"output '{self.roles.logits}' chooses from {self.vocabulary} tokens, but input "
                f"'{self.roles.token}' takes {least}..{most}"
            )

    def _require_intervals(self) -> None:
        """BadInput if a step would hold what lies outside an input's interval, of which the proof says nothing.

        How far a position can go is its `capacity`.
        """
        program, roles = self.form.program, self.roles
        if roles.position:
            item = _input(program, roles.position)
            _require_takes(item, "position", 0, "the first position")
        if roles.mask:
            item = _input(program, roles.mask)
            _require_takes(item, "mask", 1, "for a place in use")
            if item.type.shape[-1] > 1:
                _require_takes(
                    item, "mask", 0, "for a place that is not in use"
                )


def _roles(
    program: Program, states: Mapping[str, str], given: Mapping[str, str | None]
) -> Roles:
    """The role of every input that is no state."""
    inputs = [i.name for i in program.inputs if i.name not in states]
    outputs = [item.name for item in program.outputs]
    found: dict[str, str | None] = {}
    for role in NAMES:
        names = outputs if role == "logits" else inputs
        found[role] = find_name(role, names, given.get(role))
        if given.get(role) and not found[role]:
            raise BadInput(
                f"--{role} {given[role]}: the program has {', '.join(names)}"
            )
    for role, names in (("token", inputs), ("logits", outputs)):
        if not found[role]:
            raise BadInput(
                f"which of {', '.join(names)} is the {role} is not known by its name: give --{role} NAME"
            )
    _require_one_role_each(found)
    taken = {found[role] for role in ("token", "position", "mask")}
    left = sorted({*inputs} - taken)
    if left:
        raise BadInput(
            f"nothing says what input '{left[0]}' holds at a step: give --position or --mask {left[0]}, "
            "or convert the model with it as a --state or a constant (--value)"
        )
    _require_sizes(program, found)
    roles = found["position"], found["mask"]
    return Roles(str(found["token"]), *roles, str(found["logits"]))


def _require_one_role_each(found: Mapping[str, str | None]) -> None:
    """BadInput for an input that is two things at once."""
    for one, other in combinations(("token", "position", "mask"), 2):
        if found[one] and found[one] == found[other]:
            raise BadInput(
                f"input '{found[one]}' cannot be {one} and {other} at once"
            )


def _require_takes(item: Input, role: str, value: int, what: str) -> None:
    if not item.lo <= value <= item.hi:
        raise BadInput(
            f"input '{item.name}' takes {item.lo}..{item.hi}: as the {role} of a decoder it must take {value}, {what}"
        )


def _require_sizes(program: Program, found: Mapping[str, str | None]) -> None:
    for role in ("token", "position"):
        name = found[role]
        if name and prod(_input(program, name).type.shape) != 1:
            shape = list(_input(program, name).type.shape)
            raise BadInput(
                f"input '{name}' has the shape {shape}: a step reads one {role}"
            )
    mask = found["mask"]
    if mask and not _input(program, mask).type.shape:
        raise BadInput(f"input '{mask}' has no axis: a mask has one of places")


def _require_alike(form: Proven, name: str, output: str) -> None:
    """BadInput unless the output's integers are the input's: type, interval and meaning."""
    program = form.program
    where = f"state '{name}' = '{output}'"
    item, value = _input(program, name), _output(program, output)
    given = form.types[value]
    if given != item.type:
        raise BadInput(
            f"{where}: is {given} going out and {item.type} coming in"
        )
    low, high = form.intervals[value]
    if low < item.lo or high > item.hi:
        raise BadInput(
            f"{where}: goes out within {low}..{high} and is taken within {item.lo}..{item.hi}"
        )
    one, other = (
        _meaning(program, name),
        _meaning(program, output, going_out=True),
    )
    if (one.scale, one.zero_point) != (other.scale, other.zero_point):
        raise BadInput(
            f"{where}: has scale {other.scale} and zero point {other.zero_point} going out, "
            f"{one.scale} and {one.zero_point} coming in"
        )


def _input(program: Program, name: str) -> Input:
    for item in program.inputs:
        if item.name == name:
            return item
    raise BadInput(f"state '{name}': the program has no input of this name")


def _output(program: Program, name: str) -> int:
    for item in program.outputs:
        if item.name == name:
            return item.value
    raise BadInput(f"state '{name}': the program has no output of this name")


def _meaning(
    program: Program, name: str, *, going_out: bool = False
) -> Meaning:
    assert program.metadata is not None
    known = program.metadata.outputs if going_out else program.metadata.inputs
    return known.get(name, Meaning(1.0, 0))


def _zero(program: Program, item: Input) -> int:
    """The integer nearest to the zero point that the input takes."""
    return min(max(_meaning(program, item.name).zero_point, item.lo), item.hi)
