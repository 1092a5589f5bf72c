"""libcvm, compiled here: the answers of the reference, refusals of what is no plan, and the examples in C and Rust."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cvm import __version__
from cvm.file import format as file_format
from cvm.program import IntArray
from cvm.proof.validate import Proven, validate
from cvm.reference.interpreter import run as run_reference
from cvm.runtime.native import Engine, ordered_for
from tests.cvm.plan.test_channel_order import FREE, network
from tests.determinism import builds
from tests.determinism.programs import ROOT, all_items
from tests.support import golden
from tests.support.libcvm import Library, Refused, plan_bytes
from tests.support.passing_programs import depthwise
from tests.support.run_programs import chain, doubler, pair

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="built on Linux alone"),
]
EXAMPLES = ROOT / "examples" / "libcvm"
PAGE = ROOT / "docs" / "how_to" / "libcvm.md"
HEADER = ROOT / "cvm" / "engine" / "library" / "cvm.h"
MEMORY = 2**20  # bytes of values


def built(build: Callable[[], Path]) -> Path:
    """A build that several test processes share; each waits for the one that makes it."""
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / ".libcvm.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return build()
        except builds.Absent as what:
            pytest.skip(f"this machine has no {what}")


@pytest.fixture(scope="module")
def folder() -> Path:
    return built(builds.library)


@pytest.fixture(scope="module")
def library(folder: Path) -> Library:
    return Library(folder / "libcvm.so")


@pytest.mark.parametrize(
    "path", sorted(golden.FOLDER.glob("*.cvm")), ids=lambda p: p.stem
)
def test_golden_programs_give_the_answers_of_the_reference(library, path):
    form = validate(file_format.read(path))
    plan = library.open_bytes(plan_bytes(form))
    for number in range(golden.SAMPLES):
        sample = golden.inputs_of(form.program, number)
        expected = run_reference(form, sample)
        for threads in (1, 3):
            found = plan.run(sample, threads)
            assert found.keys() == expected.keys()
            for name, value in expected.items():
                assert found[name].dtype == value.dtype
                assert found[name].tobytes() == value.tobytes()
    plan.free()


@pytest.mark.parametrize("between", FREE)
def test_channels_in_another_order_give_the_same_answers(library, between):
    form, case = network(between)
    plan = library.open_bytes(plan_bytes(ordered_for(form, "avx2")))
    expected = run_reference(form, case.sample)
    found = plan.run(case.sample)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].tobytes() == value.tobytes()
    plan.free()


def test_what_passes_in_memory_counts_as_such(library):
    form = validate(depthwise())
    needed = Engine(form).core.arena_bytes
    library.open_bytes(plan_bytes(form), max_memory=needed).free()
    with pytest.raises(Refused, match=f"a run takes {needed} bytes; at most"):
        library.open_bytes(plan_bytes(form), max_memory=needed - 1)


def test_ports_and_identity_are_those_of_the_program(library):
    plan = library.open_bytes(plan_bytes(validate(pair())))
    inputs = [port.facts() for port in plan.inputs]
    assert inputs == [("a", "i32", (1, 2), 0, 9), ("b", "i32", (2, 2), -3, 300)]
    outputs = [port.facts() for port in plan.outputs]
    assert outputs == [("total", "i32", (2, 2), -3, 309)]
    assert plan.program_id == file_format.program_id(pair())
    assert library.calls.cvm_version().decode() == __version__
    plan.free()


def test_a_file_is_read_and_one_that_is_not_there_is_named(library, tmp_path):
    place = tmp_path / "p.plan"
    with pytest.raises(Refused, match=r"p\.plan: the file cannot be opened"):
        library.open(place)
    place.write_bytes(plan_bytes(validate(doubler())))
    plan = library.open(place)
    found = plan.run({"x": np.array([[1, -2, 1000]], np.int32)})
    assert found["y"].tolist() == [[2, -4, 2000]]
    plan.free()
    with pytest.raises(Refused, match="the file cannot be"):
        library.open(tmp_path)


@pytest.mark.parametrize(
    "value, sentence",
    [
        (1001, "input 'x' holds an integer outside -1000..1000"),
        (-1001, "input 'x' holds an integer outside -1000..1000"),
    ],
)
def test_an_integer_outside_its_interval_is_refused(library, value, sentence):
    plan = library.open_bytes(plan_bytes(validate(doubler())))
    with pytest.raises(Refused, match=re.escape(sentence)):
        plan.run({"x": np.array([[0, 0, value]], np.int32)})
    plan.free()


def test_bad_addresses_and_threads_are_refused(library):
    plan = library.open_bytes(plan_bytes(validate(doubler())))
    x, y = np.zeros(4, np.int32), np.zeros(4, np.int32)
    right = ([x.ctypes.data], [y.ctypes.data])
    plan.run_at(*right, 1)
    plan.run_at(*right, 256)
    for threads in (0, -1, 257):
        with pytest.raises(Refused, match=r"threads is not 1\.\.256"):
            plan.run_at(*right, threads)
    for wrong in (None, x.ctypes.data + 1):
        with pytest.raises(Refused, match="input 'x': the address"):
            plan.run_at([wrong], right[1], 1)
        with pytest.raises(Refused, match="output 'y': the address"):
            plan.run_at(right[0], [wrong], 1)
    plan.free()


def test_a_plan_that_takes_too_much_memory_is_refused(library):
    content = plan_bytes(validate(chain()))
    library.open_bytes(content, 2**20).free()
    with pytest.raises(Refused, match=r"a run takes [0-9]+ bytes; at most 1 "):
        library.open_bytes(content, 1)


def with_version(content: bytes, version: bytes) -> bytes:
    old = __version__.encode()
    assert len(version) == len(old) and content[24 : 24 + len(old)] == old
    return content[:24] + version + content[24 + len(old) :]


@pytest.mark.parametrize(
    "change, sentence",
    [
        (lambda b: b"", "this is not a plan file; `cvm plan P.cvm -o P.plan`"),
        (lambda b: b"no plan" * 9, "this is not a plan file"),
        (lambda b: b[:7] + b"\x02" + b[8:], "format has another version"),
        (
            lambda b: with_version(b, b"9.9.9"),
            f"written by cvm 9.9.9, and this is libcvm {__version__}: write it",
        ),
        (
            lambda b: with_version(b, b"9\x1b[2\xff"),
            "written by cvm 9?[2?, and this is libcvm",
        ),
        (lambda b: b[:-64], "the file ends inside the header"),
        (lambda b: b + bytes(64), "the file goes on after its end"),
        (lambda b: b[:-1] + b"\x01", "zeros are missing after the header"),
        (lambda b: b[:32].ljust(len(b), b"\xff"), "the length of a text is -1"),
    ],
)
def test_what_is_no_plan_is_refused_in_a_sentence(library, change, sentence):
    with pytest.raises(Refused, match=re.escape(sentence)):
        library.open_bytes(change(plan_bytes(validate(doubler()))))


def test_every_prefix_is_refused(library):
    content = plan_bytes(validate(chain()))
    for length in range(len(content)):
        with pytest.raises(Refused):
            library.open_bytes(content[:length], MEMORY)


@pytest.mark.parametrize("name", ["scale-3", "resize-1"])
def test_under_sanitizers_every_changed_byte_is_refused_or_runs(name, tmp_path):
    """plan_bytes ends with an error if a sanitizer finds anything, or if no changed plan runs at all."""
    folder = built(builds.sanitized_library)
    plan = tmp_path / "p.plan"
    program = file_format.read(golden.FOLDER / f"{name}.cvm")
    plan.write_bytes(plan_bytes(validate(program)))
    words = [str(folder / "plan_bytes"), str(plan), "1600"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert done.stdout.startswith("whole 1 cut 0 of ")


def test_nothing_but_the_header_can_be_seen_from_outside(folder):
    if shutil.which("nm") is None:
        pytest.skip("no nm here")
    words = ["nm", "-D", "--defined-only", str(folder / "libcvm.so")]
    lines = subprocess.run(words, capture_output=True, text=True, check=True)
    seen = {
        line.split()[2]
        for line in lines.stdout.splitlines()
        if line.split()[1] in "TDBR"
    }
    declared = set(
        re.findall(r"^CVM_API .*?(cvm_\w+)\(", HEADER.read_text(), re.M)
    )
    assert seen == declared


def in_c(linked: str, folder: Path, out: Path) -> list[str]:
    """How the example in C is compiled, with every warning an error."""
    warnings = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    source = str(EXAMPLES / "run.c")
    include = ["-I", str(HEADER.parent)]
    last = {
        "shared": ["-L", str(folder), "-lcvm", f"-Wl,-rpath,{folder}"],
        "static": [str(folder / "libcvm.a"), "-lstdc++", "-lm", "-pthread"],
    }[linked]
    return ["cc", *warnings, *include, source, *last, "-o", str(out)]


def in_rust(folder: Path, out: Path) -> list[str]:
    path = f"link-arg=-Wl,-rpath,{folder}"
    source = str(EXAMPLES / "run.rs")
    rust = ["rustc", "--edition", "2021", "-D", "warnings", source]
    return [*rust, "-L", str(folder), "-C", path, "-o", str(out)]


def as_documented(compiler: str, folder: Path, out: Path) -> list[str]:
    """The line of the page that begins with this compiler, for the library that was built for tests."""
    (line,) = re.findall(rf"^{compiler} .*$", PAGE.read_text(), re.M)
    line = re.sub(r"(\$PWD/)?build/libcvm", str(folder), line)
    words = shlex.split(line)
    assert words[-2:] == ["-o", "run"]
    return [*words[:-1], str(out)]


def is_usable(compiler: str) -> bool:
    """Whether a compiler is here and starts: rustup's stand-in for one does not, in a home without a toolchain."""
    if shutil.which(compiler) is None:
        return False
    words = [compiler, "--version"]
    return subprocess.run(words, capture_output=True).returncode == 0


def digits() -> tuple[Proven, IntArray]:
    """The digits demo's program, and one sample."""
    (item,) = all_items("models/resnet_digits8-8bit")
    (sample,) = item.sample.values()
    return validate(item.program), sample


@pytest.mark.parametrize(
    "compiling",
    [
        pytest.param(partial(in_c, "shared"), id="C"),
        pytest.param(partial(in_c, "static"), id="C, static"),
        pytest.param(in_rust, id="Rust"),
        pytest.param(partial(as_documented, "cc"), id="C of the page"),
        pytest.param(partial(as_documented, "rustc"), id="Rust of the page"),
    ],
)
def test_the_examples_give_the_digest_of_the_reference(
    folder, tmp_path, compiling
):
    out = tmp_path / "run"
    words = compiling(folder, out)
    if not is_usable(words[0]):
        pytest.skip(f"no {words[0]} here")
    compiled = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert compiled.returncode == 0, compiled.stderr
    form, sample = digits()
    (tmp_path / "digits.plan").write_bytes(plan_bytes(form))
    (tmp_path / "sample.bin").write_bytes(sample.tobytes())
    call = [out, tmp_path / "digits.plan", tmp_path / "sample.bin"]
    done = subprocess.run(call, capture_output=True, check=True)
    (name,) = (item.name for item in form.program.inputs)
    (expected,) = run_reference(form, {name: sample}).values()
    assert hashlib.sha256(done.stdout).digest() == (
        hashlib.sha256(expected.tobytes()).digest()
    )
    refused = subprocess.run([out, out, out], capture_output=True)
    assert refused.returncode == 1
    assert b"this is not a plan file" in refused.stderr
