"""What `--to stablehlo` writes: modules of integers that name no file of ours, and a self-test that can fail."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
from jax import export  # noqa: E402

from cvm.errors import BadInput  # noqa: E402
from cvm.export import targets  # noqa: E402
from cvm.export.stablehlo import modules  # noqa: E402
from cvm.file import disk  # noqa: E402
from cvm.file import format as file_format  # noqa: E402
from cvm.proof.validate import validate  # noqa: E402
from cvm.reference import interpreter  # noqa: E402
from tests.cvm.export.test_c_source import convolution  # noqa: E402
from tests.determinism.programs import all_items  # noqa: E402
from tests.support.cvm_programs import random_inputs  # noqa: E402
from tests.support.without_jax import without_jax  # noqa: E402

FILES = ["README.md", "p.jax", "p.stablehlo", "sample.npz", "test.py"]


@pytest.fixture(scope="module")
def artifact():
    return targets.export(validate(convolution()), "stablehlo", "p")


def self_test(folder):
    done = subprocess.run(
        [sys.executable, "test.py"], cwd=folder, capture_output=True, text=True
    )
    return done.returncode, done.stdout.splitlines()[-1]


def test_it_writes_the_same_files_each_time(artifact):
    again = targets.export(validate(convolution()), "stablehlo", "p")
    assert sorted(artifact.contents) == FILES
    assert again == artifact


def test_the_self_test_matches_and_another_sample_does_not(artifact, tmp_path):
    folder = tmp_path / "out"
    disk.write_folder(folder, artifact.contents)
    assert self_test(folder) == (0, "match")
    with np.load(folder / "sample.npz") as stored:
        array = stored["arr_0"].copy()
    array[...] = 0
    np.savez(folder / "sample.npz", array)
    assert self_test(folder) == (1, "differs")


def test_a_demo_model_comes_back_with_its_bytes():
    (item,) = all_items("models/resnet_digits8-8bit")
    form = validate(item.program)
    program = export.deserialize(bytearray(modules.for_jax(form)))
    assert set(program.platforms) == {"cpu"}
    found = program.call(*item.sample.values())
    expected = interpreter.run(form, item.sample)
    for array, answer in zip(found, expected.values(), strict=True):
        assert array.dtype == answer.dtype
        assert np.array_equal(array, answer)


def test_no_path_of_this_machine_is_in_a_module(artifact):
    """jax writes the file and line of each operation, unless it is kept from it."""
    for name in ("p.jax", "p.stablehlo"):
        assert b".py" not in artifact.contents[name]
        assert b"xla/" not in artifact.contents[name]
    assert jax.config.jax_traceback_in_locations_limit != 0


def test_the_module_answers_for_other_compilers_too(artifact):
    """One function of the program's inputs alone, in the portable form of StableHLO."""
    assert artifact.contents["p.stablehlo"].startswith(b"ML\xefR")
    form = validate(convolution())
    with jax.enable_x64(True):
        exported = modules._exported(form)
    (port,) = form.program.inputs
    lines = exported.mlir_module().splitlines()
    (signature,) = [line for line in lines if "@main(" in line]
    assert signature.count("%arg") == 1
    sample = random_inputs(form.program, 5)
    expected = interpreter.run(form, sample)
    found = exported.call(sample[port.name])
    assert np.array_equal(found[0], next(iter(expected.values())))


def test_constants_beyond_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr(modules, "MOST_CONSTANT_BYTES", 10)
    with pytest.raises(BadInput, match=r"22 bytes; the target stablehlo"):
        modules.portable(validate(convolution()))


def test_without_jax_it_names_what_to_install(tmp_path):
    path, out = tmp_path / "small.cvm", tmp_path / "out"
    file_format.write(convolution(), path)
    words = ["export", str(path), "--to", "stablehlo", "-o", str(out)]
    code, sentence = without_jax("cvm.__main__", *words)
    assert code == 2
    assert "needs jax; to get it, pip install 'mrt-cvm[xla]'" in sentence
    assert not out.exists()
