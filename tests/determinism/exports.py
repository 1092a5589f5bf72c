"""Exported programs, run by what runs their target, against what is written down."""

from __future__ import annotations

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

IREE_EVERY = 16


def check_onnx(
    matrix: Matrix, items: list[Item], known: dict[str, Record]
) -> None:
    """A row for onnxruntime, of the programs that ONNX can express."""
    problems, names = [], []
    for item in items:
        if all(step.name in TABLE for step in item.program.instructions):
            names.append(item.name)
            problem = onnx_problem(item, known[item.name])
            if problem is not None:
                problems.append((item.name, 0, problem))
    matrix.add("onnxruntime", names, problems)


def onnx_problem(item: Item, expected: Record) -> str | None:
    """The first instruction that differs, if an output of the exported graph does; else the output."""
    outputs = _on_onnxruntime(item.program, item.sample)
    problem = compare.outputs_problem("exported ONNX", outputs, expected)
    if problem is None:
        return None
    values = _on_onnxruntime(compare.shown(item.program), item.sample)
    first = compare.shown_problem(item.program, values, expected)
    return f"exported ONNX: {first}" if first else problem.sentence


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
    """A row for IREE, which compiles for seconds: of the models and some others that MLIR can express."""
    if mlir_programs.compiler is None:
        matrix.skipped["iree"] = mlir_programs.NO_IREE
        return
    problems, names = [], []
    for number, item in enumerate(items):
        chosen = item.group == "models" or number % IREE_EVERY == 0
        names_of = {step.name for step in item.program.instructions}
        if not chosen or not names_of <= mlir.TABLE.keys():
            continue
        names.append(item.name)
        outputs = mlir_programs.outputs_of(validate(item.program), item.sample)
        problem = compare.outputs_problem(
            "exported MLIR", outputs, known[item.name]
        )
        if problem is not None:
            problems.append((item.name, 0, problem.sentence))
    matrix.add("iree", names, problems)


def check_tosa(
    matrix: Matrix, items: list[Item], known: dict[str, Record]
) -> None:
    """A row for Arm's reference model, of the programs that TOSA can express."""
    if not tosa_programs.HAS_TOSA:
        matrix.skipped["tosa"] = tosa_programs.NO_TOSA
        return
    chosen, jobs = [], []
    for item in items:
        names = {step.name for step in item.program.instructions}
        if not names <= tosa.TABLE.keys():
            continue
        form = validate(item.program)
        jobs.append(tosa_programs.job_of(form, item.sample))
        chosen.append((item, form))
    problems = []
    answers = tosa_programs.answers_of(jobs)
    for (item, form), answer in zip(chosen, answers, strict=True):
        outputs = tosa_programs.named(form, answer)
        problem = compare.outputs_problem(
            "exported TOSA", outputs, known[item.name]
        )
        if problem is not None:
            problems.append((item.name, 0, problem.sentence))
    matrix.add("tosa", [item.name for item, _ in chosen], problems)


def check_cortex(
    matrix: Matrix, items: list[Item], known: dict[str, Record]
) -> None:
    """A row for the reader of Cortex's files, of the programs that fit its runtime."""
    problems, names = [], []
    for item in items:
        form = validate(item.program)
        try:
            runtime = runtime_of(form)
        except BadInput:
            continue
        names.append(item.name)
        outputs = outputs_of(runtime, form, item.sample)
        problem = compare.outputs_problem(
            "Cortex's files", outputs, known[item.name]
        )
        if problem is not None:
            problems.append((item.name, 0, problem.sentence))
    matrix.add("Cortex's files", names, problems)
