"""Exported programs, run by what runs their target, against what is written down."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cvm.errors import BadInput
from cvm.export import mlir, tosa
from cvm.export.onnx import TABLE
from cvm.export.onnx.model import model_of
from cvm.program import Program
from cvm.proof.validate import validate
from cvm.runtime.machine import Machine
from tests.determinism import compare
from tests.determinism.matrix import Matrix
from tests.determinism.programs import Item
from tests.determinism.records import Record
from tests.support import mlir_programs, tosa_programs
from tests.support.cortex_programs import outputs_of, runtime_of
from tests.support.onnx_programs import session_of

IREE_ALWAYS = ("models", "vectors")
IREE_EVERY = 8  # of the others


def check_onnx(
    matrix: Matrix, items: list[Item], known: dict[str, Record]
) -> None:
    """A row for onnxruntime, of the programs that ONNX can express."""
    some = [item for item in items if _within(TABLE, item)]
    problems = []
    for item in some:
        problem = onnx_problem(item, known[item.name])
        if problem is not None:
            problems.append((item.name, 0, problem))
    matrix.add("onnxruntime", [item.name for item in some], problems)


def _within(table: Collection[str], item: Item) -> bool:
    """Whether a target's table has every instruction of the program."""
    return all(step.name in table for step in item.program.instructions)


def onnx_problem(item: Item, expected: Record) -> str | None:
    """What differs in the answer of the exported graph."""
    return compare.exported_problem(
        "exported ONNX", _on_onnxruntime, item, expected
    )


def _on_onnxruntime(program: Program, sample: compare.Sample) -> compare.Sample:
    session = session_of(model_of(validate(program)))
    ports = [port.name for port in program.outputs]
    return dict(zip(ports, session.run(None, sample), strict=True))


def check_xla(
    matrix: Matrix, items: list[Item], known: dict[str, Record]
) -> None:
    """A row for XLA on this machine's device."""
    try:
        from cvm.xla.machine import Xla
    except ImportError:
        matrix.skipped["xla"] = "jax is not installed"
        return
    problems = []
    for item in items:
        machine = Xla(validate(item.program))
        problem = xla_problem(machine, item, known[item.name])
        if problem is not None:
            problems.append((item.name, 0, problem.sentence))
    matrix.add("xla", [item.name for item in items], problems)


def xla_problem(
    machine: Machine, item: Item, expected: Record
) -> compare.Problem | None:
    """The first instruction that differs, if an output does; else the output."""
    outputs = machine.run(item.sample)
    problem = compare.outputs_problem("xla", outputs, expected)
    if problem is None:
        return None
    found = compare.run_machine(machine, item.sample)
    form = validate(item.program)
    return compare.trace_problem(form, found, expected) or problem


def check_iree(
    matrix: Matrix, items: list[Item], known: dict[str, Record]
) -> None:
    """A row for IREE, which compiles for seconds: of models, vectors and some others that MLIR can express."""
    if mlir_programs.compiler is None:
        matrix.skipped["iree"] = mlir_programs.NO_IREE
        return
    problems, names = [], []
    for number, item in enumerate(items):
        chosen = item.group in IREE_ALWAYS or number % IREE_EVERY == 0
        if not chosen or not _within(mlir.TABLE, item):
            continue
        names.append(item.name)
        problem = compare.exported_problem(
            "exported MLIR", _on_iree, item, known[item.name]
        )
        if problem is not None:
            problems.append((item.name, 0, problem))
    matrix.add("iree", names, problems)


def _on_iree(program: Program, sample: compare.Sample) -> compare.Sample:
    return mlir_programs.outputs_of(validate(program), sample)


def check_tosa(
    matrix: Matrix, items: list[Item], known: dict[str, Record]
) -> None:
    """A row for Arm's reference model, of the programs that TOSA can express."""
    if not tosa_programs.HAS_TOSA:
        matrix.skipped["tosa"] = tosa_programs.NO_TOSA
        return
    some = [item for item in items if _within(tosa.TABLE, item)]
    problems = []
    given = _on_tosa([(item.program, item.sample) for item in some])
    for item, outputs in zip(some, given, strict=True):
        problem = compare.explained(
            "exported TOSA", outputs, _on_tosa_alone, item, known[item.name]
        )
        if problem is not None:
            problems.append((item.name, 0, problem))
    matrix.add("tosa", [item.name for item in some], problems)


def _on_tosa(
    given: Sequence[tuple[Program, compare.Sample]],
) -> list[compare.Sample]:
    """The outputs of each program, all in one process of the reference model."""
    forms = [validate(program) for program, _ in given]
    jobs = [
        tosa_programs.job_of(form, sample)
        for form, (_, sample) in zip(forms, given, strict=True)
    ]
    answers = tosa_programs.answers_of(jobs)
    return list(map(tosa_programs.named, forms, answers))


def _on_tosa_alone(program: Program, sample: compare.Sample) -> compare.Sample:
    (outputs,) = _on_tosa([(program, sample)])
    return outputs


def check_cortex(
    matrix: Matrix, items: list[Item], known: dict[str, Record]
) -> None:
    """A row for the reader of Cortex's files, of the programs that fit its runtime."""
    problems, names = [], []
    for item in items:
        try:
            problem = compare.exported_problem(
                "Cortex's files", _on_cortex, item, known[item.name]
            )
        except BadInput:
            continue
        names.append(item.name)
        if problem is not None:
            problems.append((item.name, 0, problem))
    matrix.add("Cortex's files", names, problems)


def _on_cortex(program: Program, sample: compare.Sample) -> compare.Sample:
    form = validate(program)
    return outputs_of(runtime_of(form), form, sample)
