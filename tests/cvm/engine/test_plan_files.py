"""`cvm plan`: what it prints, refuses and writes; `test_libcvm.py` runs such files."""

from __future__ import annotations

import json

import pytest

from cvm import __version__
from cvm.commands.plan import plan
from cvm.file import format as file_format
from cvm.runtime.native import ADDS_PAIRS
from tests.cvm.plan.test_channel_order import depthwise, network
from tests.support.command import cvm, said
from tests.support.run_programs import doubler, save


def words(*values: int) -> bytes:
    """Little-endian, of 64 bits."""
    return b"".join(
        value.to_bytes(8, "little", signed=True) for value in values
    )


def test_it_writes_the_file_and_prints_its_size(tmp_path):
    path, out = save(doubler(), tmp_path), tmp_path / "p.plan"
    result = cvm("plan", path, "-o", out)
    assert result.exit_code == 0, result.output
    size = out.stat().st_size
    assert result.stdout == (
        f"wrote {out}: {size} bytes, for libcvm {__version__}\n"
    )


def test_json_has_the_facts(tmp_path):
    path, out = save(doubler(), tmp_path), tmp_path / "p.plan"
    content = json.loads(cvm("plan", path, "-o", out, "--json").stdout)
    assert content == {
        "format": "cvm-plan-file-1",
        "program": file_format.program_id(doubler()),
        "version": __version__,
        "bytes": out.stat().st_size,
        "written": str(out),
    }


def test_the_bytes_begin_as_the_format_has_it(tmp_path):
    path, out = save(doubler(), tmp_path), tmp_path / "p.plan"
    cvm("plan", path, "-o", out)
    content = out.read_bytes()
    identity = file_format.program_id(doubler()).encode()
    version = __version__.encode().ljust(8, b"\0")
    port = words(4, 2, 1, 3)  # i32 of shape (1, 3)
    expected = b"".join(
        (
            *(words(len(__version__)), version, words(64), identity),
            *(words(1, 1), b"x".ljust(8, b"\0"), port, words(-1000, 1000)),
            *(words(1, 1), b"y".ljust(8, b"\0"), port, words(-2000, 2000)),
            words(0, 0),  # arena, constants
        )
    )
    assert content[:8] == b"\x89CVMPLN\x01"
    assert content[16 : 16 + len(expected)] == expected
    assert len(content) % 64 == 0


def test_channels_lie_in_the_order_that_is_asked_for(tmp_path):
    """The header is of as many and as large constants, and only these are others."""
    form, _ = network(depthwise)
    path = save(form.program, tmp_path)
    outs = tmp_path / "as_they_are.plan", tmp_path / "for_avx2.plan"
    assert cvm("plan", path, "-o", outs[0]).exit_code == 0
    result = cvm("plan", path, "-o", outs[1], "--fast-on", "avx2")
    assert result.exit_code == 0, result.output
    plain, ordered = (out.read_bytes() for out in outs)
    assert len(plain) == len(ordered)
    assert sorted(plain) == sorted(ordered) and plain != ordered


def test_the_orders_are_those_that_the_engine_has():
    (choice,) = (it.type for it in plan.params if it.name == "fast_on")
    assert set(choice.choices) == ADDS_PAIRS


def test_a_program_without_a_proof_is_no_plan(tmp_path):
    path, out = save(doubler(high=2**30), tmp_path), tmp_path / "p.plan"
    result = cvm("plan", path, "-o", out)
    assert result.exit_code == 1
    assert not out.exists()


@pytest.mark.parametrize("name", ["p.cvm", "missing/p.plan"])
def test_a_place_that_cannot_be_written_is_refused(tmp_path, name):
    path = save(doubler(), tmp_path)
    before = (tmp_path / "p.cvm").read_bytes()
    sentence = said(cvm("plan", path, "-o", tmp_path / name), 2)
    assert "cannot be written" in sentence
    assert (tmp_path / "p.cvm").read_bytes() == before
