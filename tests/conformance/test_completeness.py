"""Instructions, their sections of the specification, their constraints in code and their vectors name the same."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from cvm.file import format as file_format
from cvm.instructions import INSTRUCTIONS

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "cvm" / "reference"
VECTORS = Path(__file__).parent
NUMBER = re.compile(r"(?<![\w.])C\d+\b")  # C7, but not conv2d.C7


@cache
def _functions(module: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((REFERENCE / f"{module}.py").read_text(encoding="utf-8"))
    return {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


@cache
def _imports(module: str) -> dict[str, str]:
    """Names that a family imports from its sister modules."""
    tree = ast.parse((REFERENCE / f"{module}.py").read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: node.module.removeprefix("cvm.reference.")
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("cvm.reference.")
        for alias in node.names
    }


def _reached(
    module: str, function: str, seen: set[tuple[str, str]]
) -> set[str]:
    """Constraint numbers written as literals in a function or in any that it names, inside cvm/reference."""
    if (module, function) in seen or function not in _functions(module):
        return set()
    seen.add((module, function))
    found = set()
    for node in ast.walk(_functions(module)[function]):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"C\d+", node.value)
        ):
            found.add(node.value)
        if isinstance(node, ast.Name):
            found |= _reached(
                _imports(module).get(node.id, module), node.id, seen
            )
    return found


def _in_code(name: str) -> set[str]:
    family, seen = INSTRUCTIONS[name].family, set()
    return _reached(family, f"check_{name}", seen) | _reached(
        family, f"bound_{name}", seen
    )


def _broken_by_vectors(name: str) -> set[str]:
    vectors = json.loads(
        (VECTORS / f"{name}.json").read_text(encoding="utf-8")
    )["vectors"]
    rules = [
        vector.get("invalid") or vector.get("unproven") or ""
        for vector in vectors
    ]
    return {
        rule.removeprefix(f"{name}.")
        for rule in rules
        if NUMBER.fullmatch(rule.removeprefix(f"{name}."))
    }


@cache
def _sections() -> dict[str, str]:
    """Instruction name -> the text of its section."""
    law = (ROOT / "cvm" / "SPEC.md").read_text(encoding="utf-8")
    parts = (
        part.partition("\n")
        for part in re.split(r"^#{1,} ", law, flags=re.MULTILINE)[1:]
    )
    return {title.strip().strip("`"): body for title, _, body in parts}


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_specification_numbers_the_constraints_that_the_code_has(
    name: str,
) -> None:
    assert name in _sections(), f"instruction '{name}' has no section"
    assert set(NUMBER.findall(_sections()[name])) == _in_code(name)


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_every_constraint_has_a_vector_that_breaks_it(name: str) -> None:
    assert (VECTORS / f"{name}.json").exists(), (
        f"instruction '{name}' has no vectors"
    )
    assert _broken_by_vectors(name) == _in_code(name)


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_every_instruction_has_a_vector_that_runs(name: str) -> None:
    vectors = json.loads(
        (VECTORS / f"{name}.json").read_text(encoding="utf-8")
    )["vectors"]
    assert any("outputs" in vector for vector in vectors)


def _source(*patterns: str) -> str:
    paths = [
        path for pattern in patterns for path in sorted(ROOT.glob(pattern))
    ]
    assert paths
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_every_instruction_has_its_places(name: str) -> None:
    """CONTRIBUTING's list: a cost, a body and a fuzz subject of the engine, a second meaning and a maker in the tests."""
    places = {
        "cvm/proof/cost.py": rf'"{name}"',
        "cvm/engine/*.cpp": rf"make_(step|stage)_{name}\(",
        "cvm/engine/fuzz/*subjects.cpp": rf"\b{name}_?\b",
        "tests/support/plain_integers.py": rf"\b{name}\b",
        "tests/support/cvm_programs.py": rf"\b{name}\b",
    }
    if INSTRUCTIONS[name].stage:
        del places[
            "cvm/engine/fuzz/*subjects.cpp"
        ]  # drawn from the generated list
    missing = [
        place
        for place, pattern in places.items()
        if not re.search(pattern, _source(place))
    ]
    assert missing == []


def test_every_instruction_is_in_a_golden_program() -> None:
    kept = set()
    for path in (ROOT / "tests" / "cvm" / "golden").glob("*.cvm"):
        program = file_format.read(path)
        kept |= {instruction.name for instruction in program.instructions}
    assert INSTRUCTIONS.keys() - kept == set()
