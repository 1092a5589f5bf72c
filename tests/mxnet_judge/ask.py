"""Asks the judge: one process of mxnet for all cases, and another one after each case that takes it down."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.mxnet_judge.case import (
    Answer,
    Case,
    answer_from_json,
    case_to_json,
    read_lines,
    write_lines,
)

JUDGE = Path(__file__).with_name("judge.py")
PATIENCE = (
    60.0  # seconds without a new answer after which the process counts as stuck
)
CRASHED = Answer(refusal="the process of mxnet died or hung")
ONE_DNN = re.compile(
    r"could not create a (descriptor|primitive)|MKLDNN doesn't support"
)


class NoJudgeError(Exception):
    """mxnet cannot be run at all."""


def ask(
    cases: Sequence[Case],
    python: Path,
    folder: Path,
    tell: Callable[[int], None],
) -> list[Answer]:
    """mxnet's answer to each case; `tell` hears how many there are so far.

    MXNet's own code is asked instead of oneDNN, which it uses by default, where oneDNN does not know the case; and of
    a Deconvolution's target_shape, where oneDNN keeps the pad that target_shape replaces.
    """
    answers = _ask(cases, python, folder, tell, {})
    again = [
        number
        for number, (case, answer) in enumerate(
            zip(cases, answers, strict=True)
        )
        if ONE_DNN.search(answer.refusal or "") or _has_target_shape(case)
    ]
    second = _ask(
        [cases[number] for number in again],
        python,
        folder,
        lambda _: None,
        {"MXNET_MKLDNN_ENABLED": "0"},
    )
    for number, answer in zip(again, second, strict=True):
        if "natively supported" not in (answer.refusal or ""):
            answers[number] = answer
    for number, answer in enumerate(answers):
        if (
            answer == CRASHED
        ):  # perhaps of what another case did to the memory: once more, alone
            answers[number] = _ask(
                [cases[number]], python, folder, lambda _: None, {}
            )[0]
    return answers


def _has_target_shape(case: Case) -> bool:
    rows = [
        row
        for row in case.symbol["nodes"]
        if row["op"].lower().endswith("deconvolution")
    ]
    return any("target_shape" in row["attrs"] for row in rows)


def _ask(
    cases: Sequence[Case],
    python: Path,
    folder: Path,
    tell: Callable[[int], None],
    settings: Mapping[str, str],
) -> list[Answer]:
    questions, answers = folder / "cases.jsonl", folder / "answers.jsonl"
    write_lines(questions, (case_to_json(case) for case in cases))
    write_lines(answers, [])
    first = 0
    while first < len(cases):
        died = _run(
            [str(python), str(JUDGE), str(questions), str(answers), str(first)],
            settings,
            tell,
        )
        lines = list(read_lines(answers))
        done = max((line.get("number", -1) for line in lines), default=-1)
        if not lines:
            raise NoJudgeError(
                f"{python} {JUDGE} ended before its first case: {died}"
            )
        first = max(done, lines[-1].get("started", -1)) + 1
    found = {
        line["number"]: answer_from_json(line)
        for line in read_lines(answers)
        if "number" in line
    }
    return [found.get(number, CRASHED) for number in range(len(cases))]


def _run(
    command: Sequence[str],
    settings: Mapping[str, str],
    tell: Callable[[int], None],
) -> str:
    """Until the process ends or is stuck; the end of what it said."""
    answers = Path(command[-2])
    errors = answers.with_name("errors.txt")
    environment = {
        name: text
        for name, text in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME")
    }
    with errors.open("wb") as stream, answers.open("rb") as written:
        process = subprocess.Popen(
            command,
            stdout=stream,
            stderr=stream,
            env={**environment, **settings},
        )
        number, since = 0, time.monotonic()
        while process.poll() is None:
            time.sleep(0.2)
            grown = written.read().count(b"\n")
            number += grown
            if grown:
                since = time.monotonic()
                tell(number // 2)
            elif time.monotonic() - since > PATIENCE:
                process.kill()
                process.wait()
    return errors.read_text(errors="replace").strip()[-500:]
