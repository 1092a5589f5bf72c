"""A sample of mutations, each run against tests that execute its line: `make mutants MUTANTS="--sample 500"`.

    python -m tests.mutation [--coverage DB] [--sample N] [--seed N] [--only TEXT] [--tests N]

DB is a coverage database with contexts; without one, the tests run once to record it (minutes).
Survivors are printed with their diff: of the tests that execute a line, at most N are run, so
run a survivor's whole test folder before you believe it. Files are changed in place and
restored, so commit first.
"""

from __future__ import annotations

import argparse
import difflib
import json
import random
import subprocess
import sys
from pathlib import Path

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from coverage import CoverageData

from tests.mutation.sites import Mutation, sample

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("mrt/quantize", "mrt/rewrite", "mrt/refine", "cvm/plan", "cvm/proof")
COVERAGE = ROOT / "build" / "mutants.coverage"
SECONDS = 120


def record_coverage() -> None:
    """Run the tests once and keep which of them execute each line."""
    COVERAGE.parent.mkdir(exist_ok=True)
    settings = COVERAGE.with_suffix(".ini")
    settings.write_text(
        f"[run]\nsource = {','.join(ROOMS)}\ndata_file = {COVERAGE}\n"
    )
    words = [
        "-q",
        "-n",
        "auto",
        f"--cov-config={settings}",
        "--cov",
        "--cov-report=",
    ]
    folders = ["tests/mrt", "tests/cvm", "tests/conformance"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *words,
        "--cov-context=test",
        *folders,
    ]
    subprocess.run(command, cwd=ROOT, check=True)


def tests_of(data: CoverageData, mutation: Mutation, most: int) -> list[str]:
    """Tests that execute the line, or, of a line run at import, tests that use the file."""
    contexts = data.contexts_by_lineno(str(ROOT / mutation.path))
    found = {name for name in contexts.get(mutation.line, ()) if name}
    if not found:
        found = {name for names in contexts.values() for name in names if name}
    names = sorted(name.split("|")[0] for name in found)
    if len(names) > most:
        names = random.Random(mutation.line).sample(names, most)
    return names


def outcome(mutation: Mutation, names: list[str]) -> tuple[str, str]:
    """`killed`, `survived` or `not covered`, and the diff of the mutation."""
    path = ROOT / mutation.path
    before = path.read_text(encoding="utf-8")
    operator = get_operator(mutation.operator)()
    after = mutate_code(before, operator, mutation.occurrence)
    if after is None:
        return "no mutation", ""
    diff = "\n".join(
        line
        for line in difflib.unified_diff(
            before.split("\n"), after.split("\n"), lineterm="", n=0
        )
        if not line.startswith(("---", "+++", "@@"))
    )
    if not names:
        return "not covered", diff
    path.write_text(after, encoding="utf-8")
    words = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *names]
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=ROOT,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        return ("survived" if run.returncode == 0 else "killed"), diff
    except subprocess.TimeoutExpired:
        return "killed", diff
    finally:
        path.write_text(before, encoding="utf-8")


def main() -> None:
    """Run the sample and print a line for each mutation, then the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coverage", type=Path)
    parser.add_argument("--tests", type=int, default=60)
    parser.add_argument("--sample", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.coverage is None:
        record_coverage()
    data = CoverageData(str(options.coverage or COVERAGE))
    data.read()
    paths = [
        path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))
    ]
    chosen = sample(paths, ROOT, options.sample, options.seed)
    results: list[dict[str, str]] = []
    for mutation in chosen:
        if options.only not in mutation.path:
            continue
        verdict, diff = outcome(
            mutation, tests_of(data, mutation, options.tests)
        )
        print(f"{verdict:12} {mutation}", flush=True)
        if verdict != "killed":
            print(diff, flush=True)
        results.append(
            {"mutation": str(mutation), "verdict": verdict, "diff": diff}
        )
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    killed = sum(result["verdict"] == "killed" for result in results)
    print(f"{killed} of {len(results)} killed")


if __name__ == "__main__":
    main()
