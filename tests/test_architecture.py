"""What each room may import, who may print, and where floating point may be: kept by tests, not by good intentions."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOAT_GRAPH = {"onnx", "onnx_ir", "numpy"}
MAY_IMPORT = {  # third-party packages and rooms of ours, from the ground floor up
    "mrt/errors.py": set(),
    "mrt/option_values.py": {"pydantic_core"},
    "mrt/options.py": {"mrt.option_tables"},
    "mrt/option_tables.py": {
        "pydantic",
        "pydantic_core",
        "mrt.errors",
        "mrt.option_values",
        "mrt.options",
    },
    "mrt/toml_lines.py": set(),
    "mrt/progress.py": set(),
    "mrt/memory.py": set(),
    "mrt/compiled": {"mrt.errors"},
    "mrt/exact": {"numpy", "onnx_ir", "cvm.program", "mrt.exact"},
    "mrt/graph": FLOAT_GRAPH | {"mrt.errors", "mrt.exact", "mrt.graph"},
    "mrt/table": {
        "numpy",
        "mrt.option_values",
        "mrt.options",
        "cvm.errors",
        "cvm.file",
        "mrt.errors",
        "mrt.table",
    },
    "mrt/frontend": FLOAT_GRAPH | {"mrt.errors", "mrt.graph", "mrt.frontend"},
    "mrt/rewrite": FLOAT_GRAPH
    | {"mrt.errors", "mrt.exact", "mrt.graph", "mrt.rewrite"},
    "mrt/export": FLOAT_GRAPH
    | {"onnxruntime", "mrt.errors", "mrt.graph", "mrt.frontend", "mrt.export"},
    "mrt/calibrate": FLOAT_GRAPH
    | {
        "onnxruntime",
        "PIL",
        "cvm.cluster",
        "cvm.program",
        "mrt.compiled",
        "mrt.errors",
        "mrt.option_tables",
        "mrt.option_values",
        "mrt.options",
        "mrt.exact",
        "mrt.graph",
        "mrt.table",
        "mrt.calibrate",
    },
    "mrt/quantize": FLOAT_GRAPH
    | {
        "cvm",
        "mrt.errors",
        "mrt.exact",
        "mrt.graph",
        "mrt.table",
        "mrt.quantize",
    }
    | {"mrt.options", "mrt.option_values"},
    "mrt/probe": {"numpy", "onnx_ir", "cvm", "mrt"},
    "mrt/fold": {"numpy", "cvm", "mrt.fold", "mrt.quantize.builder"},
    "mrt/duplicate": FLOAT_GRAPH
    | {
        "cvm.program",
        "mrt.errors",
        "mrt.exact",
        "mrt.graph",
        "mrt.table",
        "mrt.calibrate",
        "mrt.quantize",
    }
    | {"mrt.duplicate"},
    "mrt/refine": FLOAT_GRAPH
    | {
        "cvm",
        "mrt.compiled",
        "mrt.errors",
        "mrt.exact",
        "mrt.graph",
        "mrt.memory",
        "mrt.table",
        "mrt.calibrate",
        "mrt.quantize",
        "mrt.duplicate",
        "mrt.option_values",
        "mrt.options",
        "mrt.refine",
    },
    "mrt/evaluate": FLOAT_GRAPH
    | {
        "mrt.progress",
        "cvm",
        "mrt.errors",
        "mrt.exact",
        "mrt.graph",
        "mrt.calibrate",
        "mrt.evaluate",
        "mrt.rewrite.fixed_rows",
    },
    "mrt/tune": FLOAT_GRAPH
    | {"tomlkit", "mrt.progress"}
    | {
        "cvm",
        "mrt.errors",
        "mrt.exact",
        "mrt.graph",
        "mrt.table",
        "mrt.calibrate",
        "mrt.quantize",
        "mrt.evaluate.class_output",
        "mrt.evaluate.interval",
        "mrt.evaluate.padding",
        "mrt.evaluate.scores",
    }
    | {"mrt.tune"},
    "mrt/report": {
        "onnx_ir",
        "numpy",
        "cvm",
        "mrt.errors",
        "mrt.report",
    },
    "mrt/page": {
        "jinja2",
        "numpy",
        "onnx_ir",
        "PIL",
        "tomlkit",
        "cvm",
        "mrt.calibrate",
        "mrt.doubts",
        "mrt.evaluate",
        "mrt.graph.operators",
        "mrt.page",
        "mrt.progress",
    },
    "mrt/refine/refinement.py": FLOAT_GRAPH
    | {
        "threadpoolctl",
        "mrt.calibrate",
        "mrt.quantize",
        "mrt.refine",
        "mrt.table",
    },
    "mrt/config.py": {
        "pydantic",
        "mrt.errors",
        "mrt.option_tables",
        "mrt.toml_lines",
        "mrt.option_values",
        "mrt.options",
        "mrt.calibrate",
        "mrt.table",
        "mrt.quantize.options",
        "mrt.refine.options",
    },
    "mrt/job.py": {
        "onnx_ir",
        "cvm",
        "mrt.calibrate",
        "mrt.config",
        "mrt.doubts",
        "mrt.duplicate",
        "mrt.frontend",
        "mrt.pictures",
        "mrt.progress",
        "mrt.quality",
        "mrt.quantize",
        "mrt.refine",
        "mrt.report",
        "mrt.rewrite",
        "mrt.table",
        "mrt.tune",
    },
    "mrt/bit_search.py": {
        "mrt.calibrate",
        "mrt.config",
        "mrt.errors",
        "mrt.held_back",
        "mrt.job",
        "mrt.progress",
        "mrt.project",
        "mrt.quantize",
        "mrt.refine",
        "mrt.table",
        "mrt.tune",
    },
    "mrt/stages.py": {"cvm", "mrt"},
    "mrt/config_words.py": {
        "mrt.config",
        "mrt.errors",
        "mrt.option_tables",
        "mrt.option_values",
    },
    "mrt/pipeline.py": {
        "cvm",
        "mrt.config",
        "mrt.config_words",
        "mrt.conversion",
        "mrt.doubts",
        "mrt.job",
        "mrt.memory",
        "mrt.progress",
        "mrt.quality",
        "mrt.rewrite",
        "mrt.stages",
        "mrt.table",
        "mrt.tune",
    },
    "mrt/project.py": {"numpy", "onnx_ir", "cvm", "mrt"},
    "mrt/input_shapes.py": {
        "cvm.program",
        "mrt.errors",
        "mrt.calibrate",
        "mrt.config",
        "mrt.graph",
    },
    "mrt/doubts.py": {
        "onnx_ir",
        "mrt.errors",
        "mrt.calibrate",
        "mrt.config",
        "mrt.evaluate",
        "mrt.project",
    },
    "mrt/advice.py": {
        "onnx_ir",
        "cvm",
        "mrt.calibrate",
        "mrt.errors",
        "mrt.evaluate",
        "mrt.memory",
        "mrt.page",
        "mrt.progress",
        "mrt.quantize",
        "mrt.table",
    },
    "mrt/automatic_bits.py": {
        "cvm",
        "mrt.advice",
        "mrt.config",
        "mrt.conversion",
        "mrt.errors",
        "mrt.pipeline",
        "mrt.evaluate",
        "mrt.progress",
        "mrt.quality",
        "mrt.quantize",
        "mrt.refine",
        "mrt.rewrite",
        "mrt.settings",
        "mrt.tune",
    },
    "mrt/held_back.py": {
        "onnx_ir",
        "mrt.calibrate",
        "mrt.config",
        "mrt.errors",
        "mrt.project",
        "mrt.tune",
    },
    "mrt/quality.py": {
        "onnx_ir",
        "cvm",
        "mrt.advice",
        "mrt.calibrate",
        "mrt.config",
        "mrt.duplicate",
        "mrt.errors",
        "mrt.evaluate",
        "mrt.held_back",
        "mrt.memory",
        "mrt.progress",
        "mrt.project",
        "mrt.quantize",
        "mrt.refine",
        "mrt.rewrite",
        "mrt.table",
    },
    "mrt/conversion.py": {"cvm", "mrt"},
    "mrt/provenance.py": {"cvm.program", "mrt"},
    "mrt/cli.py": {"click", "mrt.commands"},
    "mrt/commands": {"click", "rich", "cvm", "mrt"},
    "cvm/instructions.py": set(),
    "cvm/program": {"numpy", "cvm.program"},
    "cvm/file": {
        "numpy",
        "cvm.errors",
        "cvm.instructions",
        "cvm.program",
        "cvm.file",
    },
    "cvm/proof": {
        "numpy",
        "cvm.errors",
        "cvm.instructions",
        "cvm.program",
        "cvm.reference",
        "cvm.proof",
    },
    "cvm/reference": {"numpy", "cvm"},
    "cvm/cluster": {
        "dask",
        "distributed",
        "cvm.__version__",
        "cvm.cluster",
        "cvm.errors",
    },
    "cvm/xla": {
        "jax",
        "numpy",
        "cvm.instructions",
        "cvm.program",
        "cvm.proof",
        "cvm.xla",
    },
    "cvm/lower": {
        "numpy",
        "cvm.instructions",
        "cvm.program",
        "cvm.proof",
        "cvm.reference",
        "cvm.lower",
    },
    "cvm/tosa": {
        "numpy",
        "cvm.errors",
        "cvm.program",
        "cvm.proof",
        "cvm.tosa",
    },
    "cvm/secure": {"numpy", "cvm"},
    "cvm/export": {"numpy", "cvm"},
    "cvm": {"numpy", "click", "rich", "cvm"},
    "cvm/runtime/pictures.py": {
        "PIL",
        "numpy",
        "cvm",
    },  # a file with a row of its own may import that, too
    "cvm/secure/spu_link.py": {"spu", "cvm"},
    "cvm/secure/lowerings.py": {"jax", "numpy", "cvm"},
    "cvm/secure/function.py": {"jax", "cvm"},
    "cvm/secure/compiled.py": {"jax", "numpy", "cvm"},
    "cvm/export/stablehlo/modules.py": {"jax", "cvm"},
    "cvm/export/onnx/graph.py": {"numpy", "onnx", "cvm"},
    "cvm/export/onnx/model.py": {"numpy", "onnx", "cvm"},
}


def modules(folder: str) -> list[Path]:
    place = ROOT / folder
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def foreign(name: str) -> bool:
    import sys

    return name.split(".")[0] not in sys.stdlib_module_names


def is_in_a_room_within(room: str, name: str) -> bool:
    """Return whether a row for a folder inside this one holds for the file."""
    return any(
        inner.startswith(f"{room}/") and name.startswith(f"{inner}/")
        for inner in MAY_IMPORT
    )


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_what_it_may(room):
    for path in modules(room):
        name = str(path.relative_to(ROOT))
        if is_in_a_room_within(room, name):
            continue
        allowed = MAY_IMPORT[room] | MAY_IMPORT.get(name, set())
        for name in imports(path):
            parents = {
                name[:end]
                for end, letter in enumerate(name + ".")
                if letter == "."
            }
            assert not foreign(name) or parents & allowed, (
                f"{path.relative_to(ROOT)} imports {name}"
            )


def test_the_machine_never_imports_the_converter_and_the_reference_never_the_engine():
    for path in modules("cvm"):
        assert not any(name.split(".")[0] == "mrt" for name in imports(path)), (
            path
        )
    for path in modules("cvm/reference"):
        assert not any("_engine" in name for name in imports(path)), path


def test_nothing_but_the_command_imports_a_target():
    for path in [*modules("cvm"), *modules("mrt")]:
        room = path.relative_to(ROOT).parts[:2]
        if room not in (("cvm", "commands"), ("cvm", "export")):
            assert not any(
                name.startswith("cvm.export") for name in imports(path)
            ), path


def test_only_the_command_lines_print_parse_arguments_and_exit():
    for path in [*modules("cvm"), *modules("mrt")]:
        if path.name == "cli.py" or path.parent.name == "commands":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("print", "exit"), (
                    f"{path}:{node.lineno}"
                )


STARTS_PROGRAMS = {
    ROOT / "cvm/export/web/compiler.py",  # clang, wasm-ld
    ROOT / "cvm/export/r1cs/snarkjs.py",
    ROOT / "cvm/secure/environment.py",  # the Python that has SPU
    ROOT / "cvm/export/concrete/environment.py",  # the one that has Concrete
}


def test_no_code_is_taken_from_data():
    for path in [*modules("cvm"), *modules("mrt")]:
        names = set(imports(path))
        assert not names & {"pickle", "marshal", "shelve"}, path
        if path not in STARTS_PROGRAMS:
            assert "subprocess" not in names, path
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in (
                    "eval",
                    "exec",
                    "compile",
                    "__import__",
                ), f"{path}:{node.lineno}"


def test_the_reference_machine_has_no_floating_point():
    for path in [
        *modules("cvm/reference"),
        ROOT / "cvm/program/arithmetic.py",
        ROOT / "cvm/program/bounds.py",
    ]:
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (
                isinstance(node, ast.Constant) and isinstance(node.value, float)
            ), f"{path}:{node.lineno}"
            assert not (
                isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            ), f"{path}:{node.lineno}"
            if isinstance(node, ast.Attribute):
                assert not node.attr.startswith(
                    ("float", "true_divide", "mean", "sqrt")
                ), f"{path}:{node.lineno}"


INEXACT = {"dot", "matmul", "einsum", "tensordot", "inner", "mean", "std", "var", "exp", "exp2", "log", "log2", "log10",
           "tanh", "sin", "cos", "power", "float_power", "linalg", "cumsum", "average", "norm", "sinh", "cosh"}  # fmt: skip
EXACT_MATH = {
    "floor",
    "ceil",
    "frexp",
    "gcd",
    "ldexp",
    "inf",
    "isfinite",
    "isqrt",
    "fsum",
    "prod",
}  # prod of integers
EXACT_SUMS = {"weights.py"}  # sums integers, see _best_clip
ENCLOSING = {
    "enclosed_functions.py"
}  # its numbers decide only what none within their margins decides otherwise


def _is_power_of_a_float(node: ast.AST) -> bool:
    if not (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Pow)
        and isinstance(node.left, ast.Call)
    ):
        return False
    return isinstance(node.left.func, ast.Name) and node.left.func.id == "float"


@pytest.mark.parametrize(
    "room",
    [
        "mrt/exact",
        "mrt/graph",
        "mrt/quantize",
        "mrt/rewrite",
        "mrt/fold",
        "mrt/duplicate/fill_dead_channels.py",
    ],
)
def test_what_decides_a_programs_bytes_uses_only_exactly_rounded_operations(
    room,
):
    """Both run again on every machine that converts; what calibration measured comes to them in a table."""
    for path in modules(room):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (
                isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
            ), f"{path}:{node.lineno}"
            assert not _is_power_of_a_float(node), (
                f"{path}:{node.lineno} **, which is the C library's pow"
            )
            if not isinstance(node, ast.Attribute) or path.name in ENCLOSING:
                continue
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if owner == "math":
                assert node.attr in EXACT_MATH, (
                    f"{path}:{node.lineno} math.{node.attr}"
                )
            elif owner not in ("PRECISION", "enclosed_functions"):
                assert node.attr not in INEXACT, (
                    f"{path}:{node.lineno} {node.attr}"
                )
                assert node.attr != "sum" or path.name in EXACT_SUMS, (
                    f"{path}:{node.lineno} sum"
                )
