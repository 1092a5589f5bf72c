"""Options that suit a purpose give way to those that are given; the bundled networks fit encryption with them."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from cvm.file import format as file_format
from cvm.lower import lower
from cvm.lower.fitting import fit_of
from cvm.lower.secret_interpreter import SecretInterpreter
from cvm.lower.secret_program import secret_program
from cvm.proof.validate import validate
from cvm.reference import interpreter
from mrt.cli import cli
from mrt.purposes import with_purpose
from tests.support.golden import inputs_of

FHE = {
    "weight_bits": 3,
    "activation_bits": 4,
    "scales": "shift",
    "sum_bits": 6,
}


def convert(*words):
    """Run the command on the bundled residual network."""
    config = ("--config", "configs/resnet_digits8.toml", "--refine", "none")
    return CliRunner().invoke(cli, ["convert", *config, *map(str, words)])


def test_options_of_a_purpose_give_way():
    assert with_purpose(None, {"bits": 4}) == {"bits": 4}
    assert with_purpose("fhe", {"scales": None}) == FHE
    given = {"weight_bits": 2, "sum_bits": 5}
    assert with_purpose("fhe", given) == {**FHE, **given}
    assert with_purpose("fhe", {"bits": 2}) == {
        "bits": 2,
        "scales": "shift",
        "sum_bits": 6,
    }


@pytest.fixture(name="residual", scope="module")
def _residual(tmp_path_factory):
    """The bundled residual network for encryption, and what the command printed."""
    path = tmp_path_factory.mktemp("fhe") / "r.cvm"
    found = convert("--for", "fhe", "-o", path)
    assert found.exit_code == 0, found.output
    return path, found.stdout


def test_what_helps_a_program_for_encryption_fits_too(tmp_path):
    found = convert("--for", "fhe", "-o", tmp_path / "r.cvm")
    assert "dB: look at it" in found.stdout
    (line,) = [x for x in found.stderr.splitlines() if "what helps: " in x]
    flags = line.split("what helps: ")[1].split("; ")[-1].split(" (about")[0]
    assert "16" not in flags
    words = ("-o", tmp_path / "w.cvm", *flags.split())
    wider = convert("--for", "fhe", *words)
    (line,) = [x for x in wider.stdout.splitlines() if "for fhe: " in x]
    assert ": fits by its bits; " in line


def test_a_residual_network_fits_and_its_steps_are_equal(residual):
    path, text = residual
    (line,) = [x for x in text.splitlines() if x.startswith("for fhe: ")]
    assert ": fits by its bits; " in line
    form = validate(file_format.read(path))
    program = secret_program(lower(form))
    assert program.refused == []
    machine = SecretInterpreter(program)
    for number in range(3):
        sample = inputs_of(form.program, number)
        expected, found = interpreter.run(form, sample), machine.run(sample)
        for name, array in expected.items():
            assert np.array_equal(found[name], array)


def test_addends_have_the_bits_that_are_given(residual):
    form = validate(file_format.read(residual[0]))
    program = form.program
    sums = [item for item in program.instructions if item.name == "add"]
    residuals = [
        item
        for item in sums
        if all(value >= program.first_instruction for value in item.operands)
    ]
    assert len(residuals) >= 3
    for item in residuals:
        for value in item.operands:
            low, high = form.intervals[value]
            assert low >= -31 and high <= 31


def test_widths_that_had_no_parameters_are_named(tmp_path):
    words = ("--activation-bits", 5, "--weight-bits", 4, "--sum-bits", 8)
    path = tmp_path / "r.cvm"
    found = convert("--for", "fhe", *words, "-o", path)
    (line,) = [
        x for x in found.stdout.splitlines() if x.startswith("for fhe: ")
    ]
    assert "tables of 11, " in line
    assert "no parameters for networks with tables of more than 10 " in line
    fit = fit_of(lower(validate(file_format.read(path))))
    assert fit.doubtful and not fit.misfits


def test_what_does_not_fit_is_listed(tmp_path):
    path = tmp_path / "r.cvm"
    found = convert("--bits", 8, "--for", "fhe", "-o", path)
    (line,) = [
        x for x in found.stdout.splitlines() if x.startswith("for fhe: ")
    ]
    assert "does not fit: " in line
    assert "it needs a look-up of " in line and "FHE has 16" in line
    fit = fit_of(lower(validate(file_format.read(path))))
    assert len(fit.misfits) > 3
