"""Every command that the documents and the help show runs, on small stand-ins for the files that it names.

A line counts if it begins with mrt or cvm and has more than a name: in a block of code, between
backticks, or among the examples of a help text.
"""

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from PIL import Image

import cvm.cli
import mrt.cli
from benchmarks.decoder_models import Shape, nanogpt, random_weights
from cvm.errors import BadInput
from cvm.export.tosa import model as tosa_model
from cvm.export.web.compiler import Compiler
from cvm.file import format as file_format
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.runtime import native
from cvm.tosa import graph as tosa_file
from tests.cvm.export.test_concrete import perceptron
from tests.support.clusters import local_cluster
from tests.support.mxnet_files import (
    node,
    variable,
    write_params,
    write_symbol,
)
from tests.support.run_programs import decoder, doubler

ROOT = Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "calibration_data" / "digits8"
DOCUMENTS = [
    *(ROOT / f"{n}.md" for n in ("README", "CONTRIBUTING", "SECURITY")),
    *(ROOT / folder / "README.md" for folder in ("configs", "examples")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
PROGRAMS = {"mrt": mrt.cli.cli, "cvm": cvm.cli.cli}
NEEDS_ENGINE = ("cvm bench",)
NEEDS_KEYS = (  # or one sample; run by test_r1cs_proof.py
    *("cvm prove ", "cvm verify-proof "),
    "cvm commit ",
)
NEEDS_SPU = re.compile(
    r"cvm (party|strip) |.* --backend "
)  # run by tests/cvm/secure
OUTPUT_OPTIONS = (
    *("-o", "--output", "--report", "--write-config"),
    *("--receipt", "--trace"),
)
SIDE = 16


# -- collecting --------------------------------------------------------------------


def lines_of_document(text: str) -> Iterator[str]:
    """Commands in blocks of code, then those between backticks."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for block in blocks:
        yield from block.replace("\\\n", " ").splitlines()
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for snippet in re.findall(r"`([^`]+)`", prose):
        yield " ".join(snippet.split())


def lines_of_help() -> Iterator[str]:
    for program in PROGRAMS.values():
        for command in (program, *subcommands(program)):
            text = f"{command.help}\n{command.epilog or ''}"
            yield from text.splitlines()


def subcommands(group: click.Group) -> Iterator[click.Command]:
    for command in group.commands.values():
        yield command
        if isinstance(command, click.Group):
            yield from subcommands(command)


def commands() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    lines = [line for text in texts for line in lines_of_document(text)]
    found: dict[str, None] = {}
    for line in (*lines, *lines_of_help()):
        match = re.match(r"\s*(?:\$ )?((?:mrt|cvm) .*)", line)
        if match is None:
            continue
        # A comment, a second column and a pipe are no part of the command.
        command = re.split(r"\s+[#|]|\s{2,}", match[1])[0].strip()
        if command.startswith(NEEDS_KEYS) or NEEDS_SPU.match(command):
            continue
        if len(command.split()) > 2 or command.endswith("--help"):
            found[command] = None
    return list(found)


COMMANDS = commands()


def test_the_commands_are_found():
    """Some of each place, so that the search cannot come to find nothing."""
    assert {
        "mrt convert model-symbol.json --bits 8 --data calibration.npz",
        "cvm bench model.cvm --threads 2",
        "mrt --help",
        "mrt operators --frontend mxnet",
        "mrt convert --config F.toml",
        "mrt evaluate --config model.toml model.cvm --json",
        "cvm show model.cvm",
        "mrt convert model.onnx --config model.toml",
    } <= set(COMMANDS)
    assert len(COMMANDS) > 30


# -- stand-ins ---------------------------------------------------------------------


def run(*words: object) -> None:
    program, *arguments = map(str, words)
    result = CliRunner().invoke(PROGRAMS[program], arguments)
    assert result.exit_code == 0, f"{words}: {result.output}"


def id_of(program: str) -> str:
    """The program id, as `cvm digest` prints it."""
    return (
        CliRunner().invoke(cvm.cli.cli, ["digest", program]).stdout.split()[1]
    )


def make_symbol(path: Path) -> None:
    """A network for pictures of any size, with the names that the documents use, and its parameters."""
    rng = np.random.default_rng(3)
    kernel = {"kernel": "(3, 3)", "num_filter": "4", "no_bias": "True"}
    nodes = [
        variable("data"),
        variable("weight5"),
        node("Convolution", "conv5", [0, 1], **kernel),
        node("Pooling", "pool2", [2], pool_type="avg", global_pool="True", kernel="(1, 1)"),
        node("Flatten", "cls_preds", [3]),
        node("Activation", "loc_preds", [4], act_type="sigmoid"),
    ]  # fmt: skip
    write_symbol(path, nodes)
    weights = rng.normal(size=(4, 3, 3, 3)).astype(np.float32)
    parameters = path.name.removesuffix("-symbol.json") + "-0000.params"
    write_params(path.parent / parameters, {"arg:weight5": weights})


def make_samples(path: Path) -> None:
    rng = np.random.default_rng(len(path.name))
    # as many as a target of 98.8 % needs
    data = rng.normal(size=(168, 3, SIDE, SIDE)).astype(np.float32)
    data += rng.normal(size=(168, 3, 1, 1)).astype(np.float32)  # plain classes
    np.savez(path, data=data, y=np.arange(168) % 4)


def make_whole_numbers(path: Path) -> None:
    rng = np.random.default_rng(6)
    data = rng.integers(0, 256, (40, 3, SIDE, SIDE)).astype(np.float32)
    np.savez(path, data=data)


def make_integers(path: Path) -> None:
    rng = np.random.default_rng(len(path.name))
    count = 1 if path.name == "t.npz" else 3  # a trace is of one sample
    data = rng.integers(-100, 100, (count, 3, SIDE, SIDE)).astype(np.int8)
    if path.suffix == ".npy":
        np.save(path, data)
    else:
        np.savez(path, data=data)


def make_picture(path: Path) -> None:
    rng = np.random.default_rng(sum(path.name.encode()))
    pixels = rng.integers(0, 256, (SIDE, SIDE, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(path)


def make_pictures(path: Path) -> None:
    path.mkdir()
    for index in range(6):
        make_picture(path / f"{index}.png")


def make_onnx(path: Path) -> None:
    make_symbol(path.parent / "s-symbol.json")
    make_samples(path.parent / "s.npz")
    symbol, data = path.parent / "s-symbol.json", path.parent / "s.npz"
    run("mrt", "export", symbol, "--data", data, "-o", path)


def make_config(path: Path) -> None:
    for name in ("c.onnx", "c.npz"):
        MAKERS["*" + Path(name).suffix](path.parent / name)
    data = '[{}]\ndata = "c.npz"\n'
    path.write_text(
        '[model]\npath = "c.onnx"\n[preprocessing]\npreset = "raw"\n'
        + data.format("calibration")
        + data.format("evaluation")
    )


def make_program(path: Path) -> None:
    make_onnx(path.with_name("p.onnx"))
    data = path.with_name("s.npz")
    run("mrt", "convert", path.with_name("p.onnx"), "--data", data, "-o", path)


def make_program_of_shifts(path: Path) -> None:
    """As Cortex's runtime takes it."""
    make_onnx(path.with_name("p.onnx"))
    data = path.with_name("s.npz")
    words = ("--scales", "shift", "--activation-bits", 7, "-o", path)
    run("mrt", "convert", path.with_name("p.onnx"), "--data", data, *words)


def make_program_of_pictures(path: Path) -> None:
    make_onnx(path.with_name("p.onnx"))
    words = ("--input-dtype", "u8", "--preset", "imagenet", "-o", path)
    run("mrt", "convert", path.with_name("p.onnx"), *words)


def make_tosa(path: Path) -> None:
    """A program of one instruction, exported."""
    x = Input("x", TensorType("i8", (1, 3)), -128, 127)
    step = Instruction("clamp", (0,), {"min": -5, "max": 5})
    form = validate(Program((x,), (), (step,), (Output("y", 1),)))
    path.write_bytes(tosa_file.to_bytes(tosa_model.graph_of(form)))


def make_receipt(path: Path) -> None:
    """Of model.cvm and test.npz, the files beside it."""
    make_program(path.with_name("model.cvm"))
    make_samples(path.with_name("test.npz"))
    program, data = path.with_name("model.cvm"), path.with_name("test.npz")
    run("cvm", "run", program, "--input", data, "--real", "--receipt", path)


def make_receipt_of_integers(path: Path) -> None:
    """Of model.cvm and x.npz, the files beside it."""
    make_program(path.with_name("model.cvm"))
    make_integers(path.with_name("x.npz"))
    program, data = path.with_name("model.cvm"), path.with_name("x.npz")
    run("cvm", "run", program, "--input", data, "--receipt", path)


def make_program_without_a_wide_table(path: Path) -> None:
    """One that has constraints."""
    file_format.write(doubler(), path)


def make_narrow_program(path: Path) -> None:
    """One whose look-ups have few bits."""
    file_format.write(perceptron(), path)


def make_decoder_model(path: Path) -> None:
    """A decoder of one layer."""
    shape = Shape(width=16, heads=2, groups=2, layers=1, hidden=16, length=80)
    onnx.save(nanogpt(shape, random_weights(shape, gated=False)), path)


def make_tokens(path: Path) -> None:
    rng = np.random.default_rng(2)
    np.savez(path, tokens=rng.integers(0, 50, (2, 10)))


def make_decoder(path: Path) -> None:
    """A decoder small enough to follow by hand."""
    file_format.write(decoder(), path)


def make_receipt_of_tokens(path: Path) -> None:
    """Of decoder.cvm, the file beside it."""
    make_decoder(path.with_name("decoder.cvm"))
    words = ("--prompt-tokens", "1,2,3", "--receipt", path)
    run("cvm", "generate", path.with_name("decoder.cvm"), *words)


def make_trace(path: Path) -> None:
    make_program(path.with_name("t.cvm"))
    make_integers(path.with_name("t.npz"))
    program, data = path.with_name("t.cvm"), path.with_name("t.npz")
    run("cvm", "run", program, "--input", data, "--trace", path)


def make_table(path: Path) -> None:
    make_onnx(path.with_name("model.onnx"))
    data = path.with_name("s.npz")
    words = ("--data", data, "-o", path)
    run("mrt", "calibrate", path.with_name("model.onnx"), *words)


def make_probe(path: Path) -> None:
    """Of model.onnx, the file beside it."""
    make_onnx(path.with_name("model.onnx"))
    words = ("--data", path.with_name("s.npz"), "--widen", 16, "-o", path)
    run("mrt", "probe", path.with_name("model.onnx"), *words)


def make_extremes(path: Path) -> None:
    """Gathered by probe.cvm, the file beside it."""
    make_probe(path.with_name("probe.cvm"))
    words = ("--input", path.with_name("s.npz"), "--real", "-o", path)
    run("cvm", "accumulate", path.with_name("probe.cvm"), *words)


def make_program_of_table(path: Path) -> None:
    """One that records table.json, the file beside it."""
    table = path.with_name("table.json")
    make_table(table)
    model = path.with_name("model.onnx")
    run("mrt", "convert", model, "--table", table, "-o", path)


MAKERS: dict[str, Callable[[Path], None]] = {
    "*-symbol.json": make_symbol,
    "decoder.onnx": make_decoder_model,
    "tokens.npz": make_tokens,
    "decoder.cvm": make_decoder,
    "generated.json": make_receipt_of_tokens,
    "*.onnx": make_onnx,
    "extremes.npz": make_extremes,
    "pixels.npz": make_whole_numbers,
    "*.npz": make_samples,
    "*.png": make_picture,
    "images": make_pictures,
    "*.toml": make_config,
    "shift7.cvm": make_program_of_shifts,
    "pictures.cvm": make_program_of_pictures,
    "same.cvm": make_program_of_table,
    "narrow.cvm": make_narrow_program,
    "tree.cvm": make_narrow_program,
    "classifier.cvm": make_program_without_a_wide_table,
    "probe.cvm": make_probe,
    "*.cvm": make_program,
    "*.tosa": make_tosa,
    "receipt.json": make_receipt,
    "r.json": make_receipt_of_integers,
    "mine.json": make_trace,
    "theirs.json": make_trace,
    "table.json": make_table,
}


def make_digits(path: Path) -> None:
    """The bundled model and its data, and a program of it where one is named."""
    shutil.copytree(DIGITS, path.parent, dirs_exist_ok=True)
    if path.suffix == ".cvm":
        symbol = path.with_name("resnet_digits8-symbol.json")
        data = ("--data", path.with_name("calibration.npz"))
        run("mrt", "convert", symbol, *data, "--refine", "none", "-o", path)


def make(path: Path, words: list[str]) -> None:
    """The stand-in of that name; `cvm` takes integers unless it is told that they are real.

    The bundled model is itself, with its own data.
    """
    if any(word.startswith("resnet_digits8") for word in words):
        return make_digits(path)
    is_array = path.suffix in (".npz", ".npy")
    if is_array and words[0] == "cvm" and "--real" not in words:
        return make_integers(path)
    for name, maker in MAKERS.items():
        if path.match(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            return maker(path)
    raise AssertionError(f"no stand-in for {path.name}: add a maker")


def inputs_of(words: list[str]) -> list[str]:
    """The files that a command reads: words with a suffix or a slash that stand behind no option for output."""
    found = []
    for former, word in zip(["", *words], words, strict=False):
        is_file = re.fullmatch(r"[\w./-]+(\.(json|onnx|npz|npy|png|toml|cvm|params|tosa)|/)", word)  # fmt: skip
        if is_file and former not in OUTPUT_OPTIONS:
            found.append(word)
    return found


# -- running -----------------------------------------------------------------------


def require_web_compiler() -> None:
    """Skip where nothing compiles to WebAssembly."""
    try:
        Compiler.find()
    except BadInput as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """That of a cluster of one worker, in place of the one that a page names."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    with local_cluster(1) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_runs(command, tmp_path, monkeypatch, request):
    if command.startswith(NEEDS_ENGINE) and not native.available():
        pytest.skip("the native engine was not built")
    if "--to web" in command:
        require_web_compiler()
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)
    for name in inputs_of(words):
        if not Path(name).exists() and not name.endswith(".params"):
            make(Path(name.rstrip("/")).absolute(), words)
    for name in inputs_of(words):
        if name.endswith(".params"):
            shutil.move(next(tmp_path.glob("model-*.params")), name)
    if "--expect" in words:  # the page shows another program's
        words[-1] = id_of(words[2])
    if "--cluster" in words:
        place = words.index("--cluster") + 1
        words[place] = request.getfixturevalue("address")
    run(*words)
    for former, word in pairwise(words):
        if former in OUTPUT_OPTIONS:
            assert Path(word).exists(), word
