"""A sample of mutations, each run against tests that execute its line: `make mutants MUTANTS="--sample 500"`.

    python -m tests.mutation [--coverage DB] [--sample N] [--seed N] [--only TEXT] [--tests N] [--share K/N]

DB is a coverage database with contexts; without one, the tests run once to record it (minutes).
A mutation meets at most N of the tests that execute its line, and, where these pass, all of
their files. What survives that is printed with its diff. `explained.toml` gives the reason
for each survivor that no test can kill. Files are changed in place and restored, so commit first.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from coverage import CoverageData

from tests.mutation.sites import Mutation, sample

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("mrt/quantize", "mrt/rewrite", "mrt/refine", "cvm/plan", "cvm/proof")
COVERAGE = ROOT / "build" / "mutants.coverage"
EXPLAINED = Path(__file__).with_name("explained.toml")
SECONDS = (120, 600)  # for a sample of the tests, and for all of their files
# Imported once: each mutation runs in a fork of this process. Nothing of the project
# may be among them, since the fork has to import what was changed.
PRELOADED = (
    "numpy",
    "onnx_ir",
    "onnxruntime",
    "PIL.Image",
    "pytest",
    "rich.progress",
    "tomlkit",
)
COUNTED = ("killed", "explained")
FORK = multiprocessing.get_context("fork")


def record_coverage() -> None:
    """Run the tests once and keep which of them execute each line."""
    COVERAGE.parent.mkdir(exist_ok=True)
    settings = COVERAGE.with_suffix(".ini")
    lines = [
        "[run]",
        f"source = {','.join(ROOMS)}",
        f"data_file = {COVERAGE}",
        "relative_files = true",
    ]
    settings.write_text("\n".join(lines) + "\n")
    words = ["-q", "-n", "auto", f"--cov-config={settings}"]
    words += ["--cov", "--cov-report=", "--cov-context=test"]
    folders = ["tests/mrt", "tests/cvm", "tests/conformance"]
    command = [sys.executable, "-m", "pytest", *words, *folders]
    subprocess.run(command, cwd=ROOT, check=True)


def tests_of(data: CoverageData, mutation: Mutation) -> list[str]:
    """Tests that execute the line, or, of a line run at import, tests that use the file."""
    contexts = data.contexts_by_lineno(mutation.path)
    names = {name for name in contexts.get(mutation.line, ()) if name}
    if not names:
        names = {name for used in contexts.values() for name in used if name}
    return sorted({name.split("|")[0] for name in names})


def run_tests(names: Sequence[str], seconds: int) -> str:
    """`survived` where all these tests pass in a fork of this process, `killed`, or `too slow`."""
    process = FORK.Process(target=_run_tests, args=(names,))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return "too slow"
    return "survived" if process.exitcode == 0 else "killed"


def _run_tests(names: Sequence[str]) -> None:
    pytest = importlib.import_module("pytest")
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    words = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly"]
    os._exit(pytest.main([*words, *names]))


def outcome(mutation: Mutation, names: list[str], most: int) -> tuple[str, str]:
    """`killed`, `too slow`, `survived` or `not covered`, and the diff of the mutation."""
    path = ROOT / mutation.path
    before = path.read_text(encoding="utf-8")
    operator = get_operator(mutation.operator)()
    after = mutate_code(before, operator, mutation.occurrence)
    if after is None:
        return "no mutation", ""
    diff = difference(before, after)
    if not names:
        return "not covered", diff
    path.write_text(after, encoding="utf-8")
    try:
        verdict = run_tests(some_of(names, mutation, most), SECONDS[0])
        if verdict == "survived":
            files = sorted({name.split("::")[0] for name in names})
            verdict = run_tests(files, SECONDS[1])
    finally:
        path.write_text(before, encoding="utf-8")
    return verdict, diff


def some_of(names: list[str], mutation: Mutation, most: int) -> list[str]:
    """At most so many of the tests, the same ones in each run."""
    if len(names) <= most:
        return names
    return random.Random(mutation.line).sample(names, most)


def check_forks(data: CoverageData, mutation: Mutation, most: int) -> None:
    """Stop unless the tests of a mutation pass without it; else everything would look killed."""
    names = some_of(tests_of(data, mutation), mutation, most)
    if run_tests(names, SECONDS[1]) != "survived":
        sys.exit(f"the tests fail as the code stands: {' '.join(names)}")


def difference(before: str, after: str) -> str:
    """The changed lines, without their place."""
    lines = difflib.unified_diff(
        before.split("\n"), after.split("\n"), lineterm="", n=0
    )
    changes = [
        line for line in lines if not line.startswith(("---", "+++", "@@"))
    ]
    return "\n".join(changes)


def explanation(mutation: Mutation, diff: str) -> str:
    """Why no test can kill this mutation, or an empty text."""
    if not EXPLAINED.exists():
        return ""
    for entry in tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))[
        "mutation"
    ]:
        lines = _stripped(entry["diff"].strip("\n"))
        if entry["path"] == mutation.path and lines == _stripped(diff):
            return str(entry["reason"])
    return ""


def _stripped(diff: str) -> list[str]:
    return [line[0] + line[1:].strip() for line in diff.split("\n")]


def main() -> None:
    """Run the sample and print a line for each mutation, then the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coverage", type=Path)
    parser.add_argument("--tests", type=int, default=60)
    parser.add_argument("--sample", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--share", default="1/1", help="K/N: the K-th of N parts"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.coverage is None:
        record_coverage()
    for name in PRELOADED:
        importlib.import_module(name)
    data = CoverageData(str(options.coverage or COVERAGE))
    data.read()
    paths = [
        path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))
    ]
    chosen = sample(paths, ROOT, options.sample, options.seed)
    part, parts = (int(number) for number in options.share.split("/"))
    results: list[dict[str, str]] = []
    check_forks(data, chosen[0], options.tests)
    for mutation in chosen[part - 1 :: parts]:
        if options.only not in mutation.path:
            continue
        verdict, diff = outcome(
            mutation, tests_of(data, mutation), options.tests
        )
        if verdict == "survived" and explanation(mutation, diff):
            verdict = "explained"
        print(f"{verdict:12} {mutation}", flush=True)
        if verdict not in COUNTED:
            print(diff, flush=True)
        results.append(
            {"mutation": str(mutation), "verdict": verdict, "diff": diff}
        )
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    _print_score([result["verdict"] for result in results])


def _print_score(verdicts: list[str]) -> None:
    counts = {name: verdicts.count(name) for name in COUNTED}
    print(
        f"{counts['killed']} of {len(verdicts)} killed, "
        f"{counts['explained']} explained"
    )


if __name__ == "__main__":
    main()
