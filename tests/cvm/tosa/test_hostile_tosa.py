"""A stranger's TOSA file: every way in which its bytes can lie is refused, and none costs more than the file's size."""

from __future__ import annotations

import struct
import time

import numpy as np
import pytest

from cvm.errors import BadInput, CvmError, Malformed
from cvm.export.tosa.model import graph_of
from cvm.proof.validate import validate
from cvm.tosa.graph import from_bytes, to_bytes
from cvm.tosa.importing import program_of
from cvm.tosa.write_tables import _TableWriter, encode
from tests.cvm.export.test_c_source import convolution

VERSION = {"major": 1, "minor": 0, "patch": 0, "draft": False}


def written() -> bytes:
    return to_bytes(graph_of(validate(convolution())))


def test_a_file_of_something_else_is_refused():
    for data in (b"", b"TOSA", b"\0" * 64, written()[:4] + b"LOVE"):
        with pytest.raises(Malformed, match="bytes 4 to 8 are not 'TOSA'"):
            from_bytes(data)


def test_every_truncation_is_refused_or_read():
    """The bytes behind the last one that something refers to may be cut."""
    data = written()
    refused = 0
    for size in range(0, len(data), 7):
        try:
            from_bytes(data[:size])
        except CvmError:
            refused += 1
    assert refused > len(data) // 7 - 4


@pytest.mark.parametrize("seed", range(8))
def test_changed_bytes_are_refused_or_are_a_graph_like_any_other(seed):
    random = np.random.default_rng(seed)
    data = written()
    for _ in range(150):
        changed = bytearray(data)
        for place in random.integers(0, len(data), random.integers(1, 5)):
            changed[place] = random.integers(0, 256)
        try:
            program_of(from_bytes(bytes(changed)), {})
        except CvmError:
            continue


@pytest.mark.parametrize("distance", [0, 2**31, 2**32 - 1, 3])
def test_a_root_outside_or_inside_the_header_is_refused(distance):
    data = bytearray(written())
    struct.pack_into("<I", data, 0, distance)
    with pytest.raises(CvmError):
        from_bytes(bytes(data))


def test_another_version_is_refused_by_its_number():
    data = encode("TosaGraph", {"version": VERSION | {"major": 2}})
    with pytest.raises(BadInput, match=r"TOSA version 2\.0; 1\.0 and 1\.1"):
        from_bytes(data)


@pytest.mark.parametrize("count", [0, 2])
def test_one_block_is_read(count):
    region = {"name": "main", "blocks": [{"name": "b"}] * count}
    data = encode("TosaGraph", {"version": VERSION, "regions": [region]})
    with pytest.raises(BadInput, match=f"{count} blocks of operators"):
        from_bytes(data)


@pytest.mark.parametrize("what", ["variable", "is_unranked"])
def test_tensors_that_are_no_plain_ones_are_refused(what):
    tensor = {"name": "t", "type": 5, what: True}
    with pytest.raises(BadInput, match=f"tensor 't' has {what}"):
        from_bytes(of_block(tensors=[tensor]))


def test_data_outside_of_the_file_is_refused():
    tensor = {"name": "t", "type": 5, "offset": 64, "size": 8}
    with pytest.raises(BadInput, match="tensor 't' has offset"):
        from_bytes(of_block(tensors=[tensor]))


def test_a_shape_of_another_size_is_refused():
    shape = {"name": "s", "rank": 3, "data": bytes(8)}
    with pytest.raises(Malformed, match="'s' of rank 3 has 8 bytes"):
        from_bytes(of_block(shapes=[shape]))


def test_an_operator_with_the_attributes_of_another_one_is_refused():
    fields = (("axis", "i32"),)
    operator = {
        "op": 1,
        "attribute_type": 2,
        "attribute": (fields, {"axis": 0}),
    }
    with pytest.raises(Malformed, match="the attributes of another one"):
        from_bytes(of_block(operators=[operator]))


def test_one_list_that_many_operators_name_is_not_read_for_ever(monkeypatch):
    """4096 operators with one list of 16384 names: read as often as it is named, that would be 2^26 names."""
    places = []
    refer = _TableWriter.refer

    def remember(writer, at, target):
        places.append((at, target))
        refer(writer, at, target)

    monkeypatch.setattr(_TableWriter, "refer", remember)
    short, long = {"inputs": []}, {"inputs": ["n"] * 16384}
    data = bytearray(of_block(operators=[short] * 4096 + [long]))
    shared = data.index(struct.pack("<I", 16384))
    for at, target in places:
        if target < shared and not any(data[target : target + 4]):
            struct.pack_into("<I", data, at, shared - at)
    begun = time.process_time()
    with pytest.raises(Malformed, match="the same bytes too often"):
        from_bytes(bytes(data))
    assert time.process_time() - begun < 20


def of_block(**values) -> bytes:
    region = {"name": "main", "blocks": [{"name": "b", **values}]}
    return encode("TosaGraph", {"version": VERSION, "regions": [region]})
