"""`make determinism` sees what it should: a wrong bit in any step, a changed record, a program that is not the recorded one."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from cvm.instructions import INSTRUCTIONS
from cvm.plan.fuse import fused
from cvm.plan.steps import CHAIN, LINEAR, STAGES
from cvm.plan.summary import summarize
from cvm.proof.validate import Proven, validate
from cvm.runtime import native
from cvm.runtime.native import Engine
from tests.determinism import __main__ as command
from tests.determinism import agree, compare, exports, records, worker
from tests.determinism.builds import Build
from tests.determinism.matrix import Matrix
from tests.determinism.programs import GROUPS, Item, all_items, group_of

needs_engine = pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)
FUSED = {CHAIN, *LINEAR}
STEPS = sorted({CHAIN, *INSTRUCTIONS.keys() - STAGES})
THREADS = 2


@cache
def items() -> dict[str, Item]:
    return {item.name: item for only in GROUPS[1:] for item in all_items(only)}


@cache
def form_of(name: str) -> Proven:
    return validate(items()[name].program)


@cache
def known() -> dict[str, records.Record]:
    return records.load()


def changed(digest: str) -> str:
    return ("0" if digest[0] != "0" else "1") + digest[1:]


def first_holding(instruction: str) -> tuple[str, int]:
    """A program, and the place of the instruction in it."""
    for name, item in items().items():
        for place, found in enumerate(item.program.instructions):
            if found.name == instruction:
                return name, place
    raise AssertionError(f"no program has {instruction}")


def with_fault(name: str, step: int) -> compare.Problem | None:
    """What the comparison says of an ordinary run in which a bit of this step's result is wrong."""
    engine = Engine(form_of(name))
    engine.core.inject_fault(step)
    return compare.fused_problem(
        engine, items()[name].sample, known()[name], THREADS
    )


@needs_engine
@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_a_wrong_bit_in_an_instruction_is_found_in_the_trace_and_named(
    instruction: str,
) -> None:
    name, place = first_holding(instruction)
    form, expected, sample = form_of(name), known()[name], items()[name].sample
    engine = Engine(form, traceable=True)
    assert (
        compare.trace_problem(
            form, compare.run_traced(engine, sample, THREADS), expected
        )
        is None
    )
    value = form.program.first_instruction + place
    engine.core.inject_fault(
        next(
            n
            for n, step in enumerate(engine.plan.steps)
            if step.covers == (value,)
        )
    )
    problem = compare.trace_problem(
        form, compare.run_traced(engine, sample, THREADS), expected
    )
    assert problem is not None
    assert problem.instruction == place
    assert (
        f"instruction {place}, %{value} = {instruction}, is the first that differs"
        in problem.sentence
    )


@needs_engine
@pytest.mark.parametrize("kind", STEPS)
def test_a_wrong_bit_in_a_step_is_found_in_an_output_and_named(
    kind: str,
) -> None:
    """A later step may hide it, by saturating say: the first one that reaches an output is taken."""
    least = 2 if kind in FUSED else 0  # a copy has no instruction of its own
    for name in items():
        plan = fused(form_of(name))
        for number in [
            n
            for n, step in enumerate(plan.steps)
            if step.name == kind and len(step.covers) >= least
        ]:
            problem = with_fault(name, number)
            if problem is not None:
                assert problem.step == number
                assert (
                    f"step {number} is the first that differs: {summarize(plan)[number].what}"
                    in problem.sentence
                )
                assert problem.sentence.startswith("fused run: output ")
                return
    raise AssertionError(f"no fault in a {kind} reached an output")


@needs_engine
def test_a_wrong_bit_in_any_step_of_a_network_is_named_wherever_it_reaches_an_output() -> (
    None
):
    """Of 30 networks. Rescales hide many lowest bits, never all."""
    shown = hidden = 0
    for name in [f"networks/{number:03}" for number in range(30)]:
        for number in range(len(fused(form_of(name)).steps)):
            problem = with_fault(name, number)
            shown += problem is not None
            hidden += problem is None
            assert problem is None or problem.step == number
    assert shown > (shown + hidden) // 4


@pytest.mark.parametrize("name", ["random/000", "random/001", "networks/000"])
def test_a_changed_record_is_a_difference(name: str) -> None:
    form, record = form_of(name), known()[name]
    run = compare.run_reference(form, items()[name].sample)
    assert compare.trace_problem(form, run, record) is None
    first = compare.trace_problem(
        form, run, replace(record, values=changed(record.values))
    )
    assert first is not None and first.instruction == 0
    root = compare.trace_problem(
        form, run, replace(record, trace=changed(record.trace))
    )
    assert root is not None and "root" in root.sentence
    output, digest = next(iter(record.outputs.items()))
    other = compare.trace_problem(
        form,
        run,
        replace(record, outputs={**record.outputs, output: changed(digest)}),
    )
    assert other is not None and f"output {output} differs" in other.sentence


def test_another_program_and_one_without_a_record_are_differences() -> None:
    matrix, two = Matrix(), [items()["random/000"], items()["random/001"]]
    record = known()["random/000"]
    command.check_reference(
        matrix,
        two,
        {"random/000": replace(record, program=changed(record.program))},
    )
    assert matrix.rows[0].count("random") == (0, 2)
    assert "the program itself" in matrix.rows[0].wrong["random/000"]
    assert "not recorded yet" in matrix.rows[0].wrong["random/001"]
    assert not matrix.agrees


def test_records_are_what_the_reference_gives_by_digests_of_another_implementation() -> (
    None
):
    some = [item for name, item in items().items() if name.endswith("7")]
    assert {item.name: records.record(item) for item in some} == {
        item.name: known()[item.name] for item in some
    }


def test_every_program_is_recorded_and_every_instruction_is_in_one() -> None:
    count = {
        group: sum(group_of(name) == group for name in known())
        for group in GROUPS
    }
    assert count == {
        "models": 11,
        "random": 100,
        "branches": 40,
        "networks": 60,
        "detections": 20,
        "interpolations": 20,
        "vectors": 45,
    }
    assert set(items()) < set(known())
    assert set(INSTRUCTIONS) == {
        step.name
        for item in items().values()
        for step in item.program.instructions
    }


def test_recording_adds_what_is_missing_and_changes_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "digests.json"
    two = [items()["random/000"], items()["random/001"]]
    wrong = replace(known()["random/000"], trace="00" * 32)
    records.save({"random/000": wrong}, path)
    assert records.add_missing(two, path) == 1
    assert records.load(path) == {
        "random/000": wrong,
        "random/001": known()["random/001"],
    }
    before = path.read_bytes()
    assert records.add_missing(two, path) == 0
    assert path.read_bytes() == before


@pytest.mark.slow
def test_the_command_says_what_differs_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On two programs, in one source of C; of one that the reference denies the other back ends need not run."""
    found = known()
    words = ["--compilers", "", "--json", str(tmp_path / "found.json")]
    good = CliRunner().invoke(command.main, ["--only", "/042", *words])
    assert good.exit_code == 0, good.output
    assert "1/1" in good.stdout
    assert json.loads((tmp_path / "found.json").read_text())["agrees"]
    name = "random/003"
    bad = replace(found[name], trace=changed(found[name].trace))
    monkeypatch.setattr(records, "load", lambda: found | {name: bad})
    result = CliRunner().invoke(command.main, ["--only", name, *words])
    assert result.exit_code == 1
    assert "random/003: trace: root " in result.stdout


@needs_engine
def test_an_engine_that_differs_has_its_row_and_its_programs_named(
    tmp_path: Path,
) -> None:
    three = [items()[f"random/{number:03}"] for number in range(3)]
    record = known()["random/001"]
    wrong = replace(
        record, values=record.values[:8] + changed(record.values[8:])
    )
    worker.write_items(three, known() | {"random/001": wrong}, tmp_path)
    isa = native.isas()[0]
    problems = worker.start(tmp_path, None, isa, 1)
    assert {(name, threads) for name, threads, _ in problems} == {
        ("random/001", threads) for threads in (1, 2, 3, 4)
    }
    matrix = Matrix()
    matrix.add(
        "mine/portable", [item.name for item in three], problems, worker.THREADS
    )
    assert [row.count("random") for row in matrix.rows] == [(2, 3)] * 4
    (sentence,) = matrix.mismatches()
    assert sentence.startswith("random/001: trace: instruction 1, %")
    assert sentence.endswith(" [mine/portable/1,2,3,4]")


@needs_engine
@pytest.mark.parametrize("isa", native.isas() if native.available() else [])
def test_a_wrong_bit_is_named_by_its_row_on_every_instruction_set(
    monkeypatch: pytest.MonkeyPatch, isa: str
) -> None:
    name, place = first_holding("conv2d")
    value = form_of(name).program.first_instruction + place

    def faulty(form: Proven, *, traceable: bool = False) -> Engine:
        engine = Engine(form, isa=isa, traceable=traceable)
        for number, step in enumerate(engine.plan.steps):
            if traceable and step.covers == (value,):
                engine.core.inject_fault(number)
        return engine

    def here(folder: Path, _: object, __: str, every: int) -> worker.Problems:
        return worker.main(folder, every)

    monkeypatch.setattr(worker, "Engine", faulty)
    monkeypatch.setattr(worker, "start", here)
    matrix, mine = Matrix(), Build("mine", None, (isa,))
    command.check_engines(matrix, [items()[name]], known(), [mine])
    said = f"trace: instruction {place}, %{value} = conv2d, is the first that differs"
    assert {row.name: row.wrong[name] for row in matrix.rows} == {
        f"mine/{isa}/{threads}": said for threads in worker.THREADS
    }


def test_a_worker_that_dies_has_every_program_wrong(tmp_path: Path) -> None:
    worker.write_items([items()["random/000"]], known(), tmp_path)
    problems = worker.start(tmp_path, tmp_path / "no engine", "portable", 1)
    assert [(name, threads) for name, threads, _ in problems] == [
        ("random/000", threads) for threads in (1, 2, 3, 4)
    ]


def test_machines_agree_if_they_found_the_same_and_every_back_end_agrees() -> (
    None
):
    found = {"random/000": {"program": "aa", "trace": "bb", "outputs": {}}}
    other = {"random/000": {"program": "aa", "trace": "bc", "outputs": {}}}
    good = {"agrees": True, "found": found}
    failed = {"agrees": False, "found": found}
    assert agree.differences({"x86": good, "arm": good}) == []
    assert agree.differences({"x86": good, "arm": failed}) == [
        "arm: a back end differs from what is recorded"
    ]
    (said,) = agree.differences(
        {"x86": good, "arm": good, "mac": {"agrees": True, "found": other}}
    )
    assert said.startswith("random/000: mac is not x86: ")
    (said,) = agree.differences(
        {"x86": good, "mac": {"agrees": True, "found": {}}}
    )
    assert said.startswith("random/000: mac is not x86: None")


def test_exported_onnx_is_right_and_a_changed_record_is_seen():
    name, _ = first_holding("conv2d")
    record = known()[name]
    assert exports.onnx_problem(items()[name], record) is None
    outputs = {port: changed(it) for port, it in record.outputs.items()}
    problem = exports.onnx_problem(
        items()[name], replace(record, outputs=outputs)
    )
    assert problem is not None
    assert problem == f"exported ONNX: output {next(iter(outputs))} differs"
