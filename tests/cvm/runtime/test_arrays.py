import hashlib
import io
import os
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.file.npy import write_npz
from cvm.runtime import arrays
from cvm.runtime.arrays import ArrayFile
from tests.support.command import cvm
from tests.support.run_programs import MEANINGS, doubler, save

X = np.asarray([[1, 2, 3], [4, 5, 6]], np.int16)


def npy(array: np.ndarray = X, **options: object) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)  # type: ignore[arg-type]
    return stream.getvalue()


def npz(
    members: dict[str, bytes], compression: int = zipfile.ZIP_STORED
) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def read(
    folder: Path,
    data: bytes,
    *,
    inputs: tuple[str, ...] = ("x",),
    name: str = "x",
) -> np.ndarray:
    (folder / "file").write_bytes(data)
    return ArrayFile(folder / "file", inputs)[name]


def refusal(folder: Path, data: bytes, **options: tuple[str, ...]) -> str:
    with pytest.raises(BadInput) as caught:
        read(folder, data, **options)  # type: ignore[arg-type]
    return str(caught.value).replace(str(folder / "file"), "FILE")


@pytest.mark.parametrize(
    "array",
    [
        X,
        X.astype(">i2"),
        X.T,
        np.asfortranarray(X),
        X > 3,
        np.float64(2.5),
        X[:0],
    ],
)
def test_an_npy_is_read_as_it_is(tmp_path: Path, array: np.ndarray) -> None:
    found = read(tmp_path, npy(np.asarray(array)))
    assert (found.dtype, found.shape, found.tolist()) == (
        array.dtype,
        array.shape,
        array.tolist(),
    )


def test_the_version_2_header_is_read(tmp_path: Path) -> None:
    assert np.array_equal(read(tmp_path, npy(version=(2, 0))), X)


@pytest.mark.parametrize(
    "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]
)
def test_the_members_of_an_npz_are_found_by_input_name(
    tmp_path: Path, compression: int
) -> None:
    data = npz(
        {
            "a.npy": npy(),
            "labels.npy": b"not looked at",
            "b/c:0.npy": npy(X * 2),
        },
        compression,
    )
    assert np.array_equal(
        read(tmp_path, data, inputs=("a", "b/c:0"), name="a"), X
    )
    assert np.array_equal(
        read(tmp_path, data, inputs=("a", "b/c:0"), name="b/c:0"), X * 2
    )


def test_x_serves_an_only_input_that_has_no_array_of_its_own(
    tmp_path: Path,
) -> None:
    assert np.array_equal(
        read(tmp_path, npz({"x.npy": npy()}), inputs=("data",), name="data"), X
    )
    own = npz({"x.npy": npy(), "data.npy": npy(X * 2)})
    assert np.array_equal(
        read(tmp_path, own, inputs=("data",), name="data"), X * 2
    )


def test_what_numpy_saves_is_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "s.npz", x=X)
    assert np.array_equal(ArrayFile(tmp_path / "s.npz", ("x",))["x"], X)


HEADER = b"\x93NUMPY\x01\x00"


def header(text: bytes) -> bytes:
    return HEADER + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "FILE: the file is empty"),
        (b"hello", "FILE: neither an .npy nor an .npz file"),
        (
            npy()[:-1],
            "FILE: truncated: shape [2, 3] of int16 needs 12 bytes, 11 are there",
        ),
        (
            npy() + b"\0",
            "FILE: longer than its header declares: shape [2, 3] of int16 needs 12 bytes, 13 are there",
        ),
        (
            npy(np.asarray([{}, 1], object)),
            "FILE: holds Python objects, which are never loaded; expected real numbers",
        ),
        (npy(np.asarray(["a"])), "FILE: holds <U1, expected real numbers"),
        (
            npy(np.zeros(2, [("a", "i4")])),
            "FILE: holds [('a', '<i4')], expected real numbers",
        ),
        (
            header(
                b"{'descr': '<i4', 'fortran_order': False, 'shape': (1000000000000000,)}"
            ),
            "FILE: truncated: shape [1000000000000000] of int32 needs 4000000000000000 bytes, 0 are there",
        ),
        (
            header(
                b"{'descr': '<i4', 'fortran_order': False, 'shape': (-1, 5)}"
            ),
            "FILE: not a readable .npy header: shape [-1, 5]",
        ),
        (
            HEADER[:6] + b"\x09\x00",
            "FILE: not a readable .npy header: version 9.0",
        ),
        (
            b"PK\x03\x04 and no more",
            "FILE: not a readable .npz file: File is not a zip file",
        ),
        (
            npz({"x.npy": npy()})[:-30],
            "FILE: not a readable .npz file: File is not a zip file",
        ),
        (
            npz({"y.npy": npy(), "z.npy": npy()}),
            "FILE: no array 'x'; it has 'y', 'z'",
        ),
        (npz({}), "FILE: no array 'x'; it has none"),
        (
            npz({"x.npy": npy()[:-1]}),
            "FILE: array 'x': truncated: shape [2, 3] of int16 needs 12 bytes, 11 are there",
        ),
        (
            npz({"x.npy": npy()}, zipfile.ZIP_LZMA),
            "FILE: array 'x': compression method 14; save it with numpy.savez",
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(
    tmp_path: Path, data: bytes, said: str
) -> None:
    assert refusal(tmp_path, data) == said


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"{'descr': '<i4'}",
        b"(" * 9000,
        b"{'a': " * 900,
    ],
)
def test_no_header_gets_past_numpys_parser_as_a_traceback(
    tmp_path: Path, text: bytes
) -> None:
    assert refusal(tmp_path, header(text)).startswith(
        "FILE: not a readable .npy header: "
    )


def test_an_array_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(stream, "w") as archive,
        pytest.warns(UserWarning, match="Duplicate name"),
    ):
        archive.writestr("x.npy", npy())
        archive.writestr("x.npy", npy())
    assert (
        refusal(tmp_path, stream.getvalue()) == "FILE: array 'x' is there twice"
    )


def test_a_changed_byte_in_a_zip_is_noticed(tmp_path: Path) -> None:
    data = bytearray(npz({"x.npy": npy()}))
    data[data.index(npy()) + len(npy()) - 1] ^= 1
    assert (
        refusal(tmp_path, bytes(data))
        == "FILE: array 'x': broken: Bad CRC-32 for file 'x.npy'"
    )


def test_a_member_that_packs_too_well_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "MAX_PACKED_BYTES", 10_000)
    bomb = npz({"x.npy": npy(np.zeros(10_000, np.int8))}, zipfile.ZIP_DEFLATED)
    said = refusal(tmp_path, bomb)
    assert said.startswith("FILE: array 'x': ")
    assert said.endswith(
        " bytes that claim to unpack to 10128; save it with numpy.savez"
    )
    fits = npz({"x.npy": npy(np.zeros(9_000, np.int8))}, zipfile.ZIP_DEFLATED)
    assert read(tmp_path, fits).shape == (9_000,)


def test_an_npy_serves_only_one_input(tmp_path: Path) -> None:
    assert refusal(tmp_path, npy(), inputs=("a", "b")) == (
        "FILE: one array for 2 inputs; give an .npz with the arrays a, b"
    )


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere: No such file or directory$"):
        ArrayFile(tmp_path / "nowhere", ("x",))
    with pytest.raises(
        BadInput, match=r": (Is a directory|not a regular file)$"
    ):
        ArrayFile(tmp_path, ("x",))


def test_written_arrays_are_read_back_and_the_bytes_repeat() -> None:
    one, other = io.BytesIO(), io.BytesIO()
    held = {"file": X, "a/b:0": X.T, "real": X / 4}
    write_npz(one, held)
    write_npz(
        other,
        {
            name: array.astype(array.dtype.newbyteorder(">"))
            for name, array in held.items()
        },
    )
    assert one.getvalue() == other.getvalue()
    with np.load(io.BytesIO(one.getvalue()), allow_pickle=False) as found:
        assert {name: found[name].tolist() for name in found} == {
            name: a.tolist() for name, a in held.items()
        }


def test_every_version_of_python_writes_these_bytes() -> None:
    """Recorded once, and seen from Python 3.11.2, 3.11.7, 3.12 and 3.13."""
    stream = io.BytesIO()
    held = {
        "x": np.arange(6, dtype=np.int8).reshape(2, 3),
        "é": np.array([0.5, -2.0]),
    }
    write_npz(stream, held)
    assert (
        hashlib.sha256(stream.getvalue()).hexdigest()
        == "1ab5d375fa8b88bbefecb5cbc1bb743bdd2cd9c20466946c9e1883f2d4074144"
    )


def test_an_output_whose_name_a_zip_would_cut_is_refused() -> None:
    with pytest.raises(
        BadInput, match=r"^output 'a\\x00b': a name with a zero byte"
    ):
        write_npz(io.BytesIO(), {"a\0b": X})


def sparse_npy(path: Path, shape: tuple[int, ...], dtype: str) -> int:
    """The header of an array and no more, in a file that claims to have all of it; how many bytes that is."""
    header = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, described)
    path.write_bytes(header.getvalue())
    data = int(np.prod(shape)) * np.dtype(dtype).itemsize
    os.truncate(path, len(header.getvalue()) + data)
    return data


PACKED = npz({"x.npy": npy(np.zeros((5, 2**22)))}, zipfile.ZIP_DEFLATED)


@pytest.mark.parametrize(
    ("shape", "dtype", "real", "said"),
    [
        ((5, 2**22), "<i4", False, "shape [5, 4194304]; expected [1,3] or"),
        ((5, 2**22), "<f8", True, "shape [5, 4194304]; expected [1,3] or"),
        ((2**22, 3), "<f8", False, "holds float64; expected i32 integers; giv"),
    ],
)
def test_an_array_that_does_not_suit_its_input_takes_no_memory(
    tmp_path: Path, shape: tuple[int, ...], dtype: str, real: bool, said: str
) -> None:
    path = tmp_path / "x.npy"
    assert sparse_npy(path, shape, dtype) > 2**25
    save(doubler(metadata=MEANINGS), tmp_path)
    assert said in peak_of_refusal(tmp_path / "p.cvm", path, real)


@pytest.mark.parametrize("real", [True, False])
def test_a_packed_array_that_does_not_suit_its_input_is_not_unpacked(
    tmp_path: Path, real: bool
) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(PACKED)
    save(doubler(metadata=MEANINGS), tmp_path)
    said = "[5, 4194304]" if real else "holds float64"
    assert said in peak_of_refusal(tmp_path / "p.cvm", path, real)


def peak_of_refusal(program: Path, path: Path, real: bool) -> str:
    """What `cvm run` says, if it took less than 2 MiB for it."""
    words = ["run", program, "--input", path, *(["--real"] if real else [])]
    cvm(*words)  # what the first run imports is not counted
    tracemalloc.start()
    result = cvm(*words)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.exit_code == 2
    assert peak < 2**21
    return result.stderr
