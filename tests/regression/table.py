"""models.json, one line a model, and what differs between it and the states found: worse, or better than is written down."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.regression.memory import STEP, TOO_MUCH, megabytes
from tests.regression.state import CLASSES, State, decibels

FILE = Path(__file__).with_name("models.json")
WORSE_DB, BETTER_DB = (
    0.5,
    2.0,
)  # other processors add floats in other orders, which moves calibration a little
WORSE_SAMPLES, BETTER_SAMPLES = 1, 2  # of those whose class is kept
LARGER, SMALLER = 1.02, 0.95  # times the bytes that are written down
CLASSES_APART = 1  # a loaded machine takes longer
CLASSES_MORE, CLASSES_LESS = (
    1,
    3,
)  # of memory: threads that happen to work at once hold more of it
REFUSED = "refused: "
SIZES = ("bytes", "% of float")


def load() -> dict[str, State]:
    """What is written down, by model."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def text(states: Mapping[str, State]) -> str:
    """The file's content."""
    rows = [
        f" {json.dumps(name)}: {json.dumps(dict(state))}"
        for name, state in sorted(states.items())
    ]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def differences(
    written: Mapping[str, State], found: Mapping[str, State]
) -> list[str]:
    """A sentence for each figure of the models found that is not what is written down, within tolerances."""
    sentences: list[str] = []
    for name, state in found.items():
        if name not in written:
            sentences.append(f"{name}: not written down yet")
        else:
            sentences += [
                f"{name}: {item}" for item in _differences(written[name], state)
            ]
    return sentences


def _differences(written: State, found: State) -> Iterator[str]:
    for figure in dict.fromkeys((*written, *found)):
        before, now = written.get(figure), found.get(figure)
        verdict = _verdict(figure, before, now)
        if verdict is not None:
            yield f"{figure} {verdict}: {_said(before)} is written down, found {_said(now)}"


def _said(figure: object) -> str:
    return "nothing" if figure is None else str(figure)


def _verdict(figure: str, before: object, now: object) -> str | None:
    """In a word what became of a figure, or None if it is as it was."""
    if before == now:
        return None
    if figure == "memory" and now is None:  # only Linux tells
        return None
    if before is None or now is None or _is_words(before) or _is_words(now):
        return (
            "no longer converts"
            if str(now).startswith(REFUSED) and not _is_words(before)
            else "changed"
        )
    if figure == "time":
        apart = CLASSES.index(str(now)) - CLASSES.index(str(before))
        return (
            None
            if abs(apart) <= CLASSES_APART
            else "got slower"
            if apart > 0
            else "got faster"
        )
    if figure == "memory":
        return _memory(str(before), str(now))
    if figure == "same class":
        gained = _samples(now)[0] - _samples(before)[0]
        of = (_samples(before)[1], _samples(now)[1])
        return (
            "changed"
            if of[0] != of[1]
            else _moved(gained, WORSE_SAMPLES, BETTER_SAMPLES)
        )
    if figure in SIZES:
        grown = float(str(now)) / float(str(before))
        if grown > LARGER:
            return "got larger"
        return "got smaller" if grown < SMALLER else None
    return _moved(_gain(before, now), WORSE_DB, BETTER_DB)


def _memory(before: str, now: str) -> str | None:
    apart = (megabytes(now) - megabytes(before)) // STEP
    if (TOO_MUCH in now) != (TOO_MUCH in before):
        return "changed"
    if apart > CLASSES_MORE:
        return "grew"
    return "shrank" if apart < -CLASSES_LESS else None


def _is_words(figure: object) -> bool:
    return str(figure).startswith(REFUSED)


def _samples(figure: object) -> tuple[int, int]:
    kept, _, of = str(figure).split()
    return int(kept), int(of)


def _gain(before: object, now: object) -> float:
    first, second = decibels(before), decibels(now)
    return 0.0 if math.isinf(first) and math.isinf(second) else second - first


def _moved(gain: float, worse: float, better: float) -> str | None:
    if gain < -worse - 1e-9:
        return "got worse"
    return "got better" if gain > better + 1e-9 else None
