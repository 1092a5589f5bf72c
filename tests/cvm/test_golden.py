"""Files of released format versions run for ever with the same digests."""

import json

import pytest

import cvm
from cvm.file import format as file_format
from cvm.instructions import INSTRUCTIONS
from cvm.reference.interpreter import run
from cvm.runtime import native, trace
from cvm.runtime.native import Engine
from tests.support.golden import FOLDER, INDEX, inputs_of, record

GOLDEN = json.loads(INDEX.read_text())


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_file_gives_its_digests(name: str) -> None:
    assert record(file_format.read(FOLDER / f"{name}.cvm")) == GOLDEN[name]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_file_is_the_encoding_of_what_it_holds(name: str) -> None:
    path = FOLDER / f"{name}.cvm"
    assert file_format.encode(file_format.read(path)) == path.read_bytes()


@pytest.mark.parametrize("name", GOLDEN)
def test_the_machine_s_own_digests_and_trace_roots_agree(name: str) -> None:
    program = cvm.load(FOLDER / f"{name}.cvm")
    for sample, expected in enumerate(GOLDEN[name]["samples"]):
        digests: list[bytes] = []
        outputs = run(
            program,
            inputs_of(program.program, sample),
            observe=trace.observer(digests),
        )
        assert {
            output: trace.digest(value).hex()
            for output, value in outputs.items()
        } == expected["outputs"]
        assert trace.merkle_root(digests).hex() == expected["trace"]


@pytest.mark.skipif(
    not native.available(), reason="the native engine is not built"
)
@pytest.mark.parametrize("name", GOLDEN)
def test_the_engine_gives_the_digests_of_a_golden_file(name: str) -> None:
    program = cvm.load(FOLDER / f"{name}.cvm")
    for isa in native.isas():
        plain = Engine(program, isa=isa)
        traced = Engine(program, isa=isa, traceable=True)
        for sample, expected in enumerate(GOLDEN[name]["samples"]):
            digests: list[bytes] = []
            inputs = inputs_of(program.program, sample)
            for outputs in (
                plain.run(inputs),
                traced.observe(inputs, trace.observer(digests)),
            ):
                assert {
                    output: trace.digest(value).hex()
                    for output, value in outputs.items()
                } == expected["outputs"]
            assert trace.merkle_root(digests).hex() == expected["trace"]


def test_golden_files_hold_every_instruction() -> None:
    programs = [file_format.read(FOLDER / f"{name}.cvm") for name in GOLDEN]
    assert set(INSTRUCTIONS) == {
        item.name for program in programs for item in program.instructions
    }


def test_every_golden_file_is_listed() -> None:
    assert {path.stem for path in FOLDER.glob("*.cvm")} == set(GOLDEN)
