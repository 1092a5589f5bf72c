"""Samples of a decoder from sequences of tokens: the float model runs step by step, and each step is a sample.

Nobody has files of keys and values; everybody has text. What a step takes besides its token is what the machine
gives it when it generates (`cvm/program/decoder.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from cvm.program.decoder import find_name, mask_at, position_at
from mrt.calibrate.samples import (
    Choice,
    Sample,
    Samples,
    evenly_spaced,
    required_array_of,
)
from mrt.calibrate.session import FloatSession, model_inputs
from mrt.errors import BadData
from mrt.graph.notes import indices_of, set_indices
from mrt.graph.states import states_of
from mrt.graph.values import shape_of

MOST_BYTES = 2**31
"""Of all samples together, which stay in memory."""
SUFFIXES = (".npz", ".npy")


@dataclass(frozen=True)
class StepInputs:
    """The names of a decoder's inputs by what they are for, and the shapes of all."""

    token: str
    position: str | None
    mask: str | None
    states: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]

    @staticmethod
    def of(model: ir.Model) -> StepInputs | None:
        """Return the inputs of a model with states; None for any other, and where an input has no usual name."""
        states = states_of(model)
        shapes = {
            str(value.name): shape_of(value) or ()
            for value in model_inputs(model)
        }
        others = [name for name in shapes if name not in states]
        token, position, mask = (
            find_name(role, others) for role in ("token", "position", "mask")
        )
        if not states or token is None:
            return None
        if set(others) - {token, position, mask}:
            return None
        return StepInputs(token, position, mask, states, shapes)

    def note_positions(self, model: ir.Model) -> None:
        """Note that the position points into the mask's last axis."""
        for value in model_inputs(model):
            if value.name == self.position and self.mask is not None:
                set_indices(value, (0, self.shapes[self.mask][-1] - 1))

    def first(self) -> Sample:
        """The states before the first token."""
        return {
            name: np.zeros(self.shapes[name], np.float32)
            for name in self.states
        }

    def sample(self, step: int, token: int, states: Sample) -> Sample:
        """The inputs of one step."""
        sample = {
            **states,
            self.token: np.full(self.shapes[self.token], token, np.float32),
        }
        for name, content in (
            (self.position, position_at),
            (self.mask, mask_at),
        ):
            if name is not None:
                numbers = content(step, self.shapes[name])
                sample[name] = numbers.astype(np.float32)
        return sample


def lacks_states(
    path: Path, inputs: StepInputs, arrays: Mapping[str, str]
) -> bool:
    """Whether a file has tokens and no array of any state."""
    if path.is_dir() or path.suffix not in SUFFIXES:
        return False
    if path.suffix == ".npy":
        return True
    from mrt.table.stored_arrays import open_npz

    stored = open_npz(path)
    return not any(arrays.get(name, name) in stored for name in inputs.states)


def open_steps(
    path: Path,
    model: ir.Model,
    inputs: StepInputs,
    limit: int | None = None,
    *,
    arrays: Mapping[str, str] | None = None,
    choose: Choice | None = None,
) -> Samples:
    """Run the float model over sequences of tokens, [N, T] or [T], and return all steps or those chosen."""
    sequences = _sequences(path, inputs, arrays or {})
    _require_room(path, model, inputs, sequences.shape[1])
    chosen = (choose or partial(evenly_spaced, limit=limit))(sequences.size)
    chosen_steps = frozenset(chosen)
    bytes_of_sample = sum(4 * int(np.prod(s)) for s in inputs.shapes.values())
    if len(chosen_steps) * bytes_of_sample > MOST_BYTES:
        raise BadData(
            f"{path}: {len(chosen_steps)} steps of {bytes_of_sample} bytes are more than {MOST_BYTES}: "
            f"--samples {MOST_BYTES // bytes_of_sample} or fewer"
        )
    session = FloatSession(model)
    steps = enumerate(_steps(session, inputs, sequences))
    samples = [sample for number, sample in steps if number in chosen_steps]
    note = f"{path}: {sequences.size} steps of {len(sequences)} sequences of tokens, {len(samples)} of them used"
    return Samples(
        tuple(inputs.shapes),
        len(samples),
        None,
        str(path),
        lambda: iter(samples),
        [note],
        lambda index: f"step {chosen[index]}",
    )


def _steps(
    session: FloatSession,
    inputs: StepInputs,
    sequences: npt.NDArray[np.int64],
) -> Iterator[Sample]:
    for sequence in sequences:
        states = inputs.first()
        for step, token in enumerate(sequence):
            sample = inputs.sample(step, int(token), states)
            yield sample
            outputs = session.run(sample)
            states = {
                name: outputs[output] for name, output in inputs.states.items()
            }


def _sequences(
    path: Path, inputs: StepInputs, arrays: Mapping[str, str]
) -> npt.NDArray[np.int64]:
    """The tokens of a file, [N, T]."""
    names = {inputs.token: arrays.get(inputs.token, "tokens"), **arrays}
    stored = required_array_of(path, [inputs.token], inputs.token, names)
    tokens = np.stack(list(stored.rows()))
    if tokens.ndim == 1:
        tokens = tokens[None]
    if tokens.ndim != 2 or tokens.dtype.kind not in "iu":
        raise BadData(
            f"{stored.where}: has shape {list(stored.shape)} of {stored.dtype}; "
            "expected sequences of tokens, integers of shape [N, T] or [T]"
        )
    if not tokens.size:
        raise BadData(f"{stored.where}: holds no token; expected one or more")
    return tokens.astype(np.int64)


def _require_room(
    path: Path, model: ir.Model, inputs: StepInputs, length: int
) -> None:
    """Raise BadData for sequences that are longer than the places that the model has."""
    room = []
    if inputs.mask is not None:
        room.append(inputs.shapes[inputs.mask][-1])
    for value in model_inputs(model):
        interval = indices_of(value)
        if value.name == inputs.position and interval is not None:
            room.append(interval[1] + 1)
    if room and length > min(room):
        raise BadData(
            f"{path}: sequences of {length} tokens; the model has room for {min(room)}: cut them"
        )
