"""Cases that failed once, with mxnet's answer: a file that ordinary tests repeat, without mxnet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.mxnet_judge.case import (
    Answer,
    Case,
    answer_from_json,
    answer_to_json,
    case_from_json,
    case_to_json,
)
from tests.mxnet_judge.compare import Verdict

FILE = Path(__file__).with_name("regressions.jsonl")
LARGEST = 8_000  # characters of a row; larger cases are not kept
PER_OPERATOR = 3


def load() -> list[tuple[Case, Answer]]:
    items = [json.loads(line) for line in FILE.read_text().splitlines()]
    return [
        (case_from_json(item["case"]), answer_from_json(item["answer"]))
        for item in items
    ]


def keep(wrong: Sequence[Verdict], answers: Mapping[str, Answer]) -> int:
    """Append those that are not there yet, a few per operator; how many they were."""
    known = {case.id for case, _ in load()} if FILE.exists() else set()
    kept = [identity.rsplit(":", 1)[0] for identity in known]
    rows = []
    for verdict in wrong:
        case, name = verdict.case, verdict.case.id.rsplit(":", 1)[0]
        row = json.dumps(
            {
                "case": case_to_json(case),
                "answer": answer_to_json(answers[case.id]),
            }
        )
        if (
            case.id not in known
            and len(row) <= LARGEST
            and kept.count(name) < PER_OPERATOR
        ):
            kept.append(name)
            rows.append(row)
    with FILE.open("a") as file:
        file.writelines(f"{row}\n" for row in rows)
    return len(rows)
