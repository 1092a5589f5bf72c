"""SPU itself: each instruction on secrets, every protocol, weights that are secret, and a share with a flipped bit."""

from __future__ import annotations

import os

import numpy as np
import pytest

from cvm.file import format as file_format
from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.validate import validate
from cvm.reference import interpreter
from cvm.runtime.backends import BackendOptions, open_backend
from cvm.secure.refusals import REASONS
from tests.conformance.test_vectors import load_vectors, program_of_vector
from tests.cvm.secure.test_functions_on_shares import layers
from tests.support.command import cvm
from tests.support.spu import joined, needs_spu

pytestmark = needs_spu
SAMPLE = {"x": np.array([[100, -128, 127]], np.int8)}


def require_equal(form, sample, protocol="aby3", *, hide_weights=False):
    """Run on SPU, and compare with the reference."""
    options = BackendOptions(protocol, hide_weights)
    found = open_backend("spu", options, form).run(sample)
    expected = interpreter.run(form, sample)
    assert found.keys() == expected.keys()
    different = [
        name
        for name, array in expected.items()
        if not np.array_equal(found[name], array)
    ]
    assert not different


def all_vectors():
    """Return one program of every vector that SPU takes, its sample, and how many there are."""
    pairs = [
        program_of_vector(name, vector)
        for name, vector in load_vectors()
        if "outputs" in vector and name not in REASONS
    ]
    sample = {}
    for number, (program, given) in enumerate(pairs):
        for place, item in enumerate(program.inputs):
            sample[f"{number}.{place}"] = given[item.name]
    return joined(program for program, _ in pairs), sample, len(pairs)


@pytest.mark.slow
def test_every_vector_gives_its_answer_on_secrets():
    program, sample, count = all_vectors()
    assert count > 250
    require_equal(validate(program), sample)


@pytest.mark.parametrize(
    ("protocol", "hide_weights"),
    [
        ("aby3", True),
        ("semi2k", False),
        ("cheetah", False),
    ],
)
def test_each_protocol_gives_the_integers_of_the_reference(
    protocol, hide_weights
):
    """One layer that saturates, and a table."""
    form = validate(layers())
    require_equal(form, SAMPLE, protocol, hide_weights=hide_weights)


def test_division_which_spu_has_not_is_exact():
    """By a divisor that is secret, too; SPU's own gives 8191 for -2^31 / 1."""
    type_ = TensorType("i32", (1, 6))
    program = Program(
        (
            Input("x", type_, -(2**31), 2**31 - 1),
            Input("y", type_, 1, 2**20),
        ),
        (),
        (Instruction("intdiv", (0, 1)), Instruction("clz", (1,))),
        (Output("q", 2), Output("z", 3)),
    )
    x = [[-(2**31), 2**31 - 1, 2**31 - 1, -7, 7, 0]]
    y = [[1, 1, 2**20, 2, 3, 5]]
    sample = {"x": np.array(x, np.int32), "y": np.array(y, np.int32)}
    require_equal(validate(program), sample)


FLIPPING = """\
#!{python} -P
import sys
from pathlib import Path
from cvm.secure import process, spu_link
own = spu_link.shares_of
def flipped(array, protocol, *, secret):
    shares = own(array, protocol, secret=secret)
    if secret:
        parts = spu_link.share_to_bytes(shares[1])
        last = bytearray(parts[-1])
        last[-8] ^= 1
        shares[1] = spu_link.share_from_bytes([*parts[:-1], bytes(last)])
    return shares
spu_link.shares_of = flipped
process.main(Path(sys.argv[-1]))
"""


def test_a_bit_flipped_in_a_share_is_found_by_replay(tmp_path, monkeypatch):
    """No protocol notices it, since all are semi-honest; the receipt does."""
    from cvm.secure.environment import spu_python

    wrong = tmp_path / "python"
    wrong.write_text(FLIPPING.format(python=os.path.abspath(spu_python())))
    wrong.chmod(0o755)
    file_format.write(layers(), tmp_path / "p.cvm")
    np.save(tmp_path / "x.npy", np.array([[1, 2, 3]], np.int8))
    paths = (tmp_path / "p.cvm", "--input", tmp_path / "x.npy")
    made = tmp_path / "r.json"
    words = ("run", *paths, "--backend", "spu", "--receipt", made)
    for python, code in ((spu_python(), 0), (wrong, 1)):
        monkeypatch.setenv("CVM_SPU_PYTHON", str(python))
        assert cvm(*words).exit_code == 0
        judged = cvm("replay", paths[0], made, *paths[1:])
        assert judged.exit_code == code
        verdict = "no match: sample 0, output 'y'" if code else "match"
        assert judged.stdout.startswith(verdict)
