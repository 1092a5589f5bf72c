"""What every compiler must accept, and numbers that the engine and the planner share."""

import re
from pathlib import Path

import cvm
from cvm.plan.regions import MAX_OPERANDS

ENGINE = Path(cvm.__file__).parent / "engine"
KERNELS = ENGINE / "kernels"


def test_kernels_call_no_builtin_of_one_compiler() -> None:
    sources = [
        path for path in KERNELS.iterdir() if path.suffix in (".h", ".cpp")
    ]
    assert sources
    assert [
        path.name
        for path in sources
        if "__builtin_" in path.read_text(encoding="utf-8")
    ] == []


def test_a_planned_step_has_no_more_operands_than_the_engine_takes() -> None:
    header = (ENGINE / "chain.h").read_text(encoding="utf-8")
    (limit,) = re.findall(r"kMaxLoads = (\d+);", header)
    assert int(limit) == MAX_OPERANDS
