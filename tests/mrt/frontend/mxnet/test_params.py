"""Parameter files: every version and dtype read exactly, every lie refused where it stands."""

import contextlib
import random
import struct
import tracemalloc

import numpy as np
import pytest

from mrt.errors import BadModel
from mrt.frontend.mxnet.files import read_parameters
from mrt.frontend.mxnet.params import read_params
from tests.support.mxnet_files import array_bytes, params_bytes
from tests.support.shared_data import SHARED, needs_shared

FORMAT = SHARED / "mxnet" / "format"
NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3)
ONE = array_bytes(NUMBERS)
VALID = params_bytes([ONE], ["arg:w"])
DEVICE = struct.pack(
    "<ii", 2, 3
)  # the third GPU: where it was saved from does not matter
DATA = NUMBERS.tobytes()
FLOAT32 = struct.pack("<i", 0)


def version_1(shape=(2, 3), dtype=FLOAT32, data=DATA) -> bytes:
    return (
        struct.pack(f"<Ii{len(shape)}q", 0xF993FAC8, len(shape), *shape)
        + DEVICE
        + dtype
        + data
    )


def version_2(
    shape=(2, 3), dtype=FLOAT32, data=DATA, magic=0xF993FAC9, storage=0
) -> bytes:
    return (
        struct.pack(f"<Iii{len(shape)}q", magic, storage, len(shape), *shape)
        + DEVICE
        + dtype
        + data
    )


def one(array: bytes) -> np.ndarray | None:
    return read_params(params_bytes([array], ["w"]), "p").arrays[0]


def test_version_2_is_read():
    file = read_params(VALID, "p")
    assert file.names == ("arg:w",)
    assert file.arrays[0].dtype == np.float32
    assert file.arrays[0].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "array",
    [
        version_1(),
        version_2(),
        version_2(magic=0xF993FACA),
        struct.pack("<III", 2, 2, 3) + DEVICE + FLOAT32 + NUMBERS.tobytes(),
    ],
    ids=["V1", "V2", "V3", "V0"],
)
def test_every_version_holds_the_same_numbers(array):
    assert one(array).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("flag", "data", "dtype", "value"),
    [
        (0, b"\x00\x00\xc0\x3f", "float32", 1.5),
        (1, b"\x00\x00\x00\x00\x00\x00\xf8\x3f", "float64", 1.5),
        (2, b"\x00\x3e", "float16", 1.5),
        (3, b"\xff", "uint8", 255),
        (4, b"\xfe\xff\xff\xff", "int32", -2),
        (5, b"\xfe", "int8", -2),
        (6, b"\xfe\xff\xff\xff\xff\xff\xff\xff", "int64", -2),
        (7, b"\x01", "bool", True),
        (8, b"\xfe\xff", "int16", -2),
    ],
)
def test_every_dense_dtype_is_read(flag, data, dtype, value):
    array = one(version_2((1,), struct.pack("<i", flag), data))
    assert array.dtype.name == dtype
    assert array.tolist() == [value]


def test_an_array_of_rank_0_is_none_before_version_3_and_a_scalar_in_it():
    assert one(struct.pack("<Iii", 0xF993FAC9, 0, 0)) is None
    assert one(struct.pack("<Ii", 0xF993FAC8, 0)) is None
    assert one(struct.pack("<I", 0)) is None
    assert (
        one(version_2((), data=b"\x00\x00\xc0\x3f", magic=0xF993FACA)).tolist()
        == 1.5
    )


def test_an_unknown_shape_in_version_3_is_none():
    assert one(struct.pack("<Iii", 0xF993FACA, 0, -1)) is None
    assert one(struct.pack("<Iiiqq", 0xF993FACA, 0, 2, -1, 3)) is None


def test_the_reserved_number_may_be_anything():
    assert read_params(
        struct.pack("<QQ", 0x112, 77) + VALID[16:], "p"
    ).names == ("arg:w",)


def test_every_truncation_is_refused():
    for length in range(len(VALID)):
        with pytest.raises(
            BadModel,
            match=r"^p: .*, byte \d+: (truncated|\d+ (arrays|names) do not fit)",
        ):
            read_params(VALID[:length], "p")


HUGE = 2**40
LIES = [
    (b"", "header, byte 0: truncated; 8 bytes needed, 0 left"),
    (b"\x13" + VALID[1:], "not an MXNet parameter file (starts with 0x113, expected 0x112)"),
    (b"PK\x03\x04" + bytes(60), "not an MXNet parameter file (starts with 0x4034b50"),
    (VALID + b"\x00", "1 trailing bytes"),
    (params_bytes([ONE, ONE], ["arg:w", "arg:w"]), "name 2 of 2, byte 186: duplicate name 'arg:w'"),
    (params_bytes([ONE], ["a", "b"]), "names, byte 96: 2 names for 1 arrays"),
    (params_bytes([ONE, ONE], ["a"]), "1 names for 2 arrays"),
    (VALID.replace(b"arg:w", b"arg:\xff"), "name 1 of 1, byte 109: not UTF-8"),
    (struct.pack("<QQQ", 0x112, 0, HUGE), "1099511627776 arrays do not fit into the 0 bytes left"),
    (VALID[:88] + struct.pack("<Q", HUGE), "names, byte 96: 1099511627776 names do not fit"),
    (params_bytes([version_2(storage=1)], ["w"]), "array 1 of 1, byte 32: storage is row_sparse; only dense"),
    (params_bytes([version_2(storage=2)], ["w"]), "storage is csr"),
    (params_bytes([version_2(storage=-1)], ["w"]), "storage is unknown (-1)"),
    (params_bytes([version_2(dtype=struct.pack("<i", 12))], ["w"]), "dtype bfloat16 is not supported"),
    (params_bytes([version_2(dtype=struct.pack("<i", 9))], ["w"]), "dtype number 9 is not supported"),
    (params_bytes([version_2((-2, 3))], ["w"]), "negative dimension in shape (-2, 3)"),
    (params_bytes([version_2((-1, 3))], ["w"]), "negative dimension in shape (-1, 3)"),
    (params_bytes([version_1((-1, 3))], ["w"]), "negative dimension in shape (-1, 3)"),
    (params_bytes([version_2((-2, 3), magic=0xF993FACA)], ["w"]), "negative dimension in shape (-2, 3)"),
    (params_bytes([struct.pack("<Iii", 0xF993FAC9, 0, -1)], ["w"]), "rank -1 is outside 0..32"),
    (params_bytes([struct.pack("<Iii", 0xF993FAC9, 0, 33) + bytes(33 * 8)], ["w"]), "rank 33 is outside 0..32"),
    (params_bytes([struct.pack("<I", 0xDEADBEEF)], ["w"]), "unknown array version 0xdeadbeef"),
    (params_bytes([version_2((HUGE, HUGE))], ["w"]), "truncated; shape (1099511627776, 1099511627776) of float32"),
    (params_bytes([version_2((2**62, 4))], ["w"]), "truncated; shape (4611686018427387904, 4) of float32"),
    (params_bytes([version_2((0, HUGE, HUGE))], ["w"]), "shape (0, 1099511627776, 1099511627776) is too large"),
    (params_bytes([version_2((4, 3))], ["w"]), "array 1 of 1, byte 64: truncated; shape (4, 3) of float32"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "problem"), LIES, ids=[problem[:40] for _, problem in LIES]
)
def test_a_lie_is_refused_where_it_stands(data, problem):
    tracemalloc.start()
    with pytest.raises(BadModel) as refused:
        read_params(data, "weights.params")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert str(refused.value).startswith("weights.params: ")
    assert problem in str(refused.value)
    assert peak < 2**20


def test_mutated_files_are_read_or_refused_and_nothing_else():
    generator = random.Random(5)
    original = params_bytes(
        [ONE, version_1(), version_2((1,), magic=0xF993FACA)], ["a", "b", "c"]
    )
    for _ in range(3000):
        data = bytearray(original)
        for _ in range(generator.randint(1, 3)):
            data[generator.randrange(len(data))] = generator.choice(
                [0, 1, 127, 128, 255]
            )
        with contextlib.suppress(BadModel):
            read_params(
                bytes(
                    data[
                        : generator.choice(
                            [len(data), generator.randrange(len(data))]
                        )
                    ]
                ),
                "p",
            )


def test_prefixes_are_taken_off(tmp_path):
    path = tmp_path / "p.params"
    path.write_bytes(
        params_bytes([ONE, ONE, ONE], ["arg:w", "aux:mean", "dense0_bias"])
    )
    assert list(read_parameters(path).arrays) == ["w", "mean", "dense0_bias"]


def test_one_name_under_two_prefixes_is_refused(tmp_path):
    path = tmp_path / "p.params"
    path.write_bytes(params_bytes([ONE, ONE], ["arg:w", "aux:w"]))
    with pytest.raises(BadModel, match="parameter 'w' occurs twice"):
        read_parameters(path)


def test_a_list_without_names_is_no_checkpoint(tmp_path):
    path = tmp_path / "p.params"
    path.write_bytes(params_bytes([ONE], []))
    with pytest.raises(BadModel, match="its 1 arrays have no names"):
        read_parameters(path)


def shared(name: str):
    return read_params((FORMAT / name).read_bytes(), name)


@needs_shared
def test_every_dtype_written_by_mxnet():
    file = shared("alltypes.params")
    found = dict(zip(file.names, file.arrays, strict=True))
    assert sorted({array.dtype.name for array in file.arrays}) == [
        "bool", "float16", "float32", "float64", "int32", "int64", "int8", "uint8",
    ]  # fmt: skip
    assert all(array.shape for array in found.values())


@needs_shared
def test_special_numbers_and_names_written_by_mxnet():
    file = shared("special.params")
    assert file.names == ("arg:x", "aux:ümlaut_moving_mean")
    numbers = file.arrays[0]
    assert np.isnan(numbers[0])
    assert numbers.view(np.uint32).tolist() == [
        0x7FC00000, 0x7F800000, 0xFF800000, 0x80000000, 0x00000001, 0x7F7FC99E,
    ]  # fmt: skip


@needs_shared
def test_numpy_semantics_written_by_mxnet():
    file = shared("np_v3.params")
    assert file.names == ("s", "z", "m")
    assert file.arrays[0].tolist() == 3.5
    assert file.arrays[1].shape == (0, 3)
    assert file.arrays[2].dtype == np.float64
    assert [array.shape for array in shared("np_v3_scalar.params").arrays] == [
        ()
    ]


@needs_shared
def test_the_oldest_version_written_by_mxnet():
    file = shared("legacy_ndarray.v0")
    assert file.names == ()
    assert [array.shape for array in file.arrays] == [(128,)] * 6
    assert all(array.tolist() == list(range(128)) for array in file.arrays)


@needs_shared
def test_lists_and_empty_files_written_by_mxnet():
    assert shared("f32_list.params").names == ()
    assert len(shared("f32_single.params").arrays) == 1
    assert shared("empty_dict.params").arrays == ()


@needs_shared
def test_gluon_names_written_by_mxnet():
    assert shared("gluon_save_parameters.params").names[0] == "0.weight"
    assert (
        shared("gluon_paramdict.params").names[-1] == "batchnorm0_running_var"
    )


@needs_shared
@pytest.mark.parametrize(
    ("name", "problem"),
    [("row_sparse", "row_sparse"), ("csr", "csr"), ("bf16", "dtype bfloat16")],
)
def test_what_is_not_supported_is_refused_by_name(name, problem):
    with pytest.raises(BadModel, match=problem):
        shared(f"{name}.params")
