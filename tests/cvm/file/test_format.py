"""Program files, byte by byte: what is written, that it reads back, and what the two digests cover."""

import hashlib
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path

import cbor2
import numpy as np
import pytest

from cvm.errors import BadInput, Invalid, Malformed
from cvm.file import format as file_format
from cvm.program import (
    Input,
    Instruction,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import validate
from tests.support.cvm_programs import random_program

CAST = Program(
    (Input("x", TensorType("i8", (2,)), -1, 1),),
    (),
    (Instruction("cast", (0,), {"dtype": "i32"}),),
    (Output("y", 1),),
)
CAST_HEADER = (
    "a4"
    "66696e70757473"  # inputs
    "818561780181022001"  # [["x", 1, [2], -1, 1]]
    "676f757470757473"  # outputs
    "8182617901"  # [["y", 1]]
    "69636f6e7374616e747380"  # constants: []
    "6c696e737472756374696f6e73"  # instructions
    "81830c81008104"  # [[12, [0], [4]]]
)
ADD = Program(
    (Input("x", TensorType("i32", (1, 2)), 0, 9),),
    (np.array([[-2, 515]], np.int32), np.array([[True, False]])),
    (Instruction("add", (0, 1)), Instruction("select", (2, 3, 0))),
    (Output("y", 4),),
)


def identical(a: Program, b: Program) -> bool:
    """Equal in everything, the constants' dtypes, shapes and values included."""
    constants = all(
        x.dtype == y.dtype and x.shape == y.shape and np.array_equal(x, y)
        for x, y in zip(a.constants, b.constants, strict=True)
    )
    return constants and replace(a, constants=()) == replace(b, constants=())


def test_a_file_is_prefix_header_and_padding_to_64() -> None:
    header = bytes.fromhex(CAST_HEADER)
    prefix = bytes.fromhex("8943564d0d0a1a013d00000000000000")
    assert len(header) == 0x3D
    assert file_format.encode(CAST) == prefix + header + bytes(128 - 16 - 61)


def test_each_constant_is_little_endian_and_padded_to_64() -> None:
    data = file_format.encode(ADD)
    constants = data[-128:]
    assert constants[:64] == bytes.fromhex("feffffff03020000") + bytes(56)
    assert constants[64:] == bytes([1, 0]) + bytes(62)
    assert len(data) % 64 == 0


def test_metadata_follows_the_program_without_padding() -> None:
    metadata = Metadata(
        {"x": Meaning(0.5, 3, "data")},
        {},
        {1: Meaning(0.1, 0)},
        ("cat",),
        {"model": "m"},
    )
    data = file_format.encode(replace(CAST, metadata=metadata))
    section = bytes.fromhex(
        "a5"
        "66696e70757473" "a1" "6178" "83" "f93800" "03" "6464617461"  # inputs: {"x": [0.5, 3, "data"]}
        "666c6162656c73" "81" "63636174"  # labels: ["cat"]
        "6676616c756573" "a1" "01" "83" "fb3fb999999999999a" "00" "60"  # values: {1: [0.1, 0, ""]}
        "676f757470757473" "a0"  # outputs: {}
        "6a70726f76656e616e6365" "a1" "656d6f64656c" "616d"  # provenance: {"model": "m"}
    )  # fmt: skip
    prefix = b"CVMMETA\x01" + len(section).to_bytes(8, "little")
    assert data == file_format.encode(CAST) + prefix + section


def test_factors_and_centres_of_channels_follow_the_source_of_a_value() -> None:
    metadata = Metadata(
        values={1: Meaning(0.5, 0, "", (0.5, 1.0), (-1.5, 0.0))}
    )
    data = file_format.encode(replace(CAST, metadata=metadata))
    assert bytes.fromhex("a10185f93800006082f93800f93c0082f9be00f90000") in data
    read = file_format.decode(data).metadata
    assert read is not None and read.values[1] == metadata.values[1]


def test_an_input_may_have_factors_and_an_output_may_not() -> None:
    meaning = Meaning(0.5, 0, "", (0.5, 1.0))
    name = CAST.inputs[0].name
    metadata = Metadata(inputs={name: meaning})
    data = file_format.encode(replace(CAST, metadata=metadata))
    read = file_format.decode(data).metadata
    assert read is not None and read.inputs == {name: meaning}
    for wrong in (
        Metadata(outputs={CAST.outputs[0].name: meaning}),
        Metadata(inputs={name: replace(meaning, centres=(0.0, 1.0))}),
    ):
        with pytest.raises(Malformed, match="meaning"):
            file_format.encode(replace(CAST, metadata=wrong))


def test_the_header_is_what_cbor2_writes_canonically() -> None:
    program = random_program(5)
    data = file_format.encode(program)
    header = data[16 : 16 + int.from_bytes(data[8:16], "little")]
    assert cbor2.dumps(cbor2.loads(header), canonical=True) == header


@pytest.mark.parametrize("seed", range(60))
def test_reading_what_was_written_is_the_identity(seed: int) -> None:
    program = random_program(seed)
    data = file_format.encode(program)
    decoded = file_format.decode(data)
    assert identical(decoded, program)
    assert file_format.encode(decoded) == data


def test_big_endian_and_strided_constants_are_written_alike() -> None:
    swapped = tuple(
        np.asfortranarray(a.astype(a.dtype.newbyteorder(">")))
        for a in ADD.constants
    )
    assert file_format.encode(
        replace(ADD, constants=swapped)
    ) == file_format.encode(ADD)


def test_a_constant_of_rank_0_keeps_its_rank() -> None:
    program = replace(ADD, constants=(np.array(7, np.int32), ADD.constants[1]))
    assert (
        file_format.decode(file_format.encode(program)).constants[0].shape == ()
    )


def test_constants_are_views_that_cannot_be_written() -> None:
    data = file_format.encode(ADD)
    for constant in file_format.decode(data).constants:
        assert not constant.flags.writeable
        assert np.shares_memory(constant, np.frombuffer(data, np.uint8))


def test_later_writes_to_the_caller_s_buffer_do_not_change_the_program() -> (
    None
):
    data = bytearray(file_format.encode(ADD))
    program = file_format.decode(data)
    data[-128] = 0
    assert program.constants[0].tolist() == [[-2, 515]]


def test_the_program_id_is_sha256_of_everything_before_the_metadata() -> None:
    expected = hashlib.sha256(file_format.encode(CAST)).hexdigest()
    described = replace(CAST, metadata=Metadata(labels=("cat",)))
    assert file_format.program_id(CAST) == expected
    assert file_format.program_id(described) == expected
    assert file_format.program_id(file_format.encode(described)) == expected


def test_the_metadata_digest_is_sha256_of_the_metadata_section() -> None:
    described = replace(CAST, metadata=Metadata(labels=("cat",)))
    data = file_format.encode(described)
    expected = hashlib.sha256(data[128:]).hexdigest()
    assert data[128:136] == b"CVMMETA\x01"
    assert file_format.metadata_digest(described) == expected
    assert file_format.metadata_digest(data) == expected
    assert file_format.metadata_digest(CAST) is None
    assert file_format.metadata_digest(file_format.encode(CAST)) is None


def test_split_parts_program_and_metadata() -> None:
    described = replace(CAST, metadata=Metadata())
    program, metadata = file_format.split(file_format.encode(described))
    assert program == file_format.encode(CAST)
    assert bytes(metadata[:8]) == b"CVMMETA\x01"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (replace(CAST, inputs=(Input("\ud800", TensorType("i8", (2,)), 0, 1),)), "cannot be written: surrogates"),
        (replace(CAST, inputs=(Input("x" * 257, TensorType("i8", (2,)), 0, 1),)), "257 bytes; at most 256"),
        (replace(CAST, inputs=(Input("x", TensorType("f32", (2,)), 0, 1),)), "unknown dtype 'f32'"),
        (replace(CAST, inputs=(Input("x", TensorType("i8", (0,)), 0, 1),)), "dimension is 0"),
        (replace(CAST, inputs=(Input("x", TensorType("i8", (1,) * 7), 0, 1),)), "shape has 7 entries"),
        (replace(CAST, inputs=(Input("x", TensorType("i8", (2,)), 0, 10**5000),)), "16610 bits"),
        (replace(CAST, inputs=(Input("x", TensorType("i8", (2,)), 0, 2**63),)), "hi is 9223372036854775808"),
        (replace(CAST, constants=(np.zeros(3),)), "a constant of dtype float64"),
        (replace(CAST, constants=(np.zeros((2, 0), np.int8),)), "dimension is 0"),
        (replace(CAST, instructions=(Instruction("warp", (0,)),)), "unknown instruction 'warp'"),
        (replace(CAST, instructions=(Instruction("cast", (0,)),)), r"cast: attributes \[\]; expected \['dtype'\]"),
        (replace(CAST, instructions=(Instruction("cast", (0,), {"dtype": "f32"}),)), "attribute 'f32'; expected"),
        (replace(CAST, instructions=(Instruction("cast", (0,), {"dtype": 10**5000}),)), "of thousands of digits"),
        (replace(CAST, instructions=(Instruction("cast", (-1,), {"dtype": "i32"}),)), "operand is -1"),
        (replace(CAST, outputs=(Output("y", -1),)), "value of an output is -1"),
        (replace(CAST, metadata=Metadata({"x": Meaning(float("inf"), 0)})), "scale inf"),
        (replace(CAST, metadata=Metadata({"x": Meaning(float("nan"), 0)})), "not a number"),
        (replace(CAST, metadata=Metadata({"x": Meaning(0.0, 0)})), "scale 0.0"),
        (replace(CAST, metadata=Metadata(values={1: Meaning(1.0, 0, "", (1.0,), (float("inf"),))})), "centre inf"),
        (replace(CAST, metadata=Metadata(values={1: Meaning(1.0, 0, "", (1.0,), (0.0, 1.0))})), "2 centres and 1 factors"),
        (replace(CAST, metadata=Metadata(values={1: Meaning(1.0, 0, "", (), (0.0,))})), "1 centres and 0 factors"),
        (replace(CAST, metadata=Metadata({"x": Meaning(1.0, 2**31)})), "zero point is 2147483648"),
    ],
)  # fmt: skip
def test_what_no_reader_would_accept_is_not_written(
    program: Program, message: str
) -> None:
    with pytest.raises(Malformed, match=message):
        file_format.encode(program)


def test_write_then_read(tmp_path: Path) -> None:
    path = tmp_path / "model.cvm"
    program = replace(ADD, metadata=Metadata(labels=("a",)))
    file_format.write(program, path)
    assert path.read_bytes() == file_format.encode(program)
    assert identical(file_format.read(path), program)
    assert identical(file_format.read(str(path)), program)
    assert os.listdir(tmp_path) == ["model.cvm"]


def test_write_replaces_an_older_file(tmp_path: Path) -> None:
    path = tmp_path / "model.cvm"
    path.write_bytes(b"old")
    file_format.write(CAST, path)
    assert path.read_bytes() == file_format.encode(CAST)


def test_a_program_that_cannot_be_written_leaves_the_older_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "model.cvm"
    path.write_bytes(b"old")
    with pytest.raises(Malformed):
        file_format.write(replace(CAST, outputs=(Output("y", -1),)), path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.cvm"]


def test_a_write_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(
        BadInput, match=r"model\.cvm: cannot be written: Permission denied"
    ):
        file_format.write(CAST, tmp_path / "model.cvm")
    assert os.listdir(tmp_path) == []


def test_writing_into_a_missing_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match="cannot be written: No such file or directory"
    ):
        file_format.write(CAST, tmp_path / "none" / "model.cvm")


def test_writing_onto_a_folder_says_so(tmp_path: Path) -> None:
    (tmp_path / "model.cvm").mkdir()
    with pytest.raises(BadInput, match="cannot be written: Is a directory"):
        file_format.write(CAST, tmp_path / "model.cvm")
    assert os.listdir(tmp_path) == ["model.cvm"]


def test_reading_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.cvm: No such file or directory"):
        file_format.read(tmp_path / "none.cvm")


def test_reading_a_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a folder, not a program; name"):
        file_format.read(tmp_path)


def test_reading_an_empty_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "model.cvm").touch()
    with pytest.raises(BadInput, match="the file is empty"):
        file_format.read(tmp_path / "model.cvm")


def test_reading_a_text_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "model.cvm").write_text("hello, world\n")
    with pytest.raises(
        Malformed,
        match=r"model\.cvm: not a program: it begins with b'hello, w'",
    ):
        file_format.read(tmp_path / "model.cvm")


def test_what_follows_a_program_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A sparse file: 256 MiB that take no place on the disk."""
    path = tmp_path / "sparse.cvm"
    path.write_bytes(file_format.encode(CAST))
    os.truncate(path, 2**28)
    most = 128 + 16 + 2**26
    tracemalloc.start()
    with pytest.raises(Malformed) as caught:
        file_format.read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(caught.value) == (
        f"{path}: the file has 268435456 bytes; with its header and the largest metadata it has at most {most}"
    )
    assert peak < 2**20


def test_metadata_of_the_largest_size_is_read(tmp_path: Path) -> None:
    """What is wrong with it is found in it, not in the size of the file."""
    path = tmp_path / "large.cvm"
    section = b"CVMMETA\x01" + (2**26).to_bytes(8, "little")
    path.write_bytes(file_format.encode(CAST) + section)
    os.truncate(path, 128 + 16 + 2**26)
    with pytest.raises(Malformed, match=r"expected metadata \(a map\)"):
        file_format.read(path)


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its header was checked: another may not take its place."""
    path = tmp_path / "p.cvm"
    data = file_format.encode(CAST)
    path.write_bytes(data)

    def change(size: int, end: int) -> None:
        path.write_bytes(data.replace(b"ax", b"az", 1))

    monkeypatch.setattr(file_format, "_check_size", change)
    with pytest.raises(Malformed, match="the file changed while it was read"):
        file_format.read(path)


# -- constants of 4 bits


def test_two_elements_of_4_bits_share_a_byte_in_version_2() -> None:
    weights = np.array([[1, -1, 7], [-8, 0, 3], [2, -2, 5]], np.int8)
    program = replace(ADD, constants=(*ADD.constants, weights))
    plain = file_format.encode(program)
    data = file_format.encode(replace(program, packed=frozenset({2})))
    assert (plain[7], data[7]) == (1, 2)
    # 1 -1, 7 -8, 0 3, 2 -2, 5 and nothing: the first of two in the low half
    assert data[-64:] == bytes.fromhex("f18730e205") + bytes(59)
    assert file_format.program_id(data) != file_format.program_id(plain)
    read = file_format.decode(data)
    assert read.packed == {2} and read.constants[2].dtype == np.int8
    assert np.array_equal(read.constants[2], weights)
    assert not read.constants[2].flags.writeable
    assert file_format.encode(read) == data


def test_every_element_of_4_bits_reads_back_and_takes_half_a_byte() -> None:
    for count in (1, 2, 15, 16, 16384):
        weights = (np.arange(count) % 16 - 8).astype(np.int8)
        program = replace(ADD, constants=(weights,), packed=frozenset({0}))
        read = file_format.decode(file_format.encode(program))
        assert np.array_equal(read.constants[0], weights)
    assert len(file_format.encode(program)) < 16384 / 2 + 256


@pytest.mark.parametrize(
    ("constant", "index"),
    [
        (np.array([8], np.int8), 0),
        (np.array([-9], np.int8), 0),
        (np.array([1], np.int32), 0),
        (np.array([1], np.int8), 1),
        (np.array([1], np.int8), -1),
    ],
)
def test_what_4_bits_cannot_hold_is_not_written(
    constant: np.ndarray, index: int
) -> None:
    program = replace(ADD, constants=(constant,), packed=frozenset({index}))
    with pytest.raises(Malformed, match=r"to have 4 bits|is to be packed"):
        file_format.encode(program)
    with pytest.raises(Invalid, match="V3"):
        validate(program)
