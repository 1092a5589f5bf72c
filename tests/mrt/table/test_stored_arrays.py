"""Arrays streamed out of .npy and .npz files, and every way such a file can lie."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mrt.errors import BadData
from mrt.table import stored_arrays
from mrt.table.stored_arrays import StoredArray, open_npy, open_npz


def member(path: Path, name: str = "x") -> StoredArray:
    found = open_npz(path)[name]
    if isinstance(found, BadData):
        raise found
    return found


def write_member(
    path: Path, data: bytes, compression: int = zipfile.ZIP_STORED
) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("x.npy", data)
    return path


def npy_bytes(array: np.ndarray, *, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_rows_of_a_member_come_one_by_one(tmp_path: Path, save) -> None:
    save(
        tmp_path / "a.npz",
        x=np.array([[1, 2], [3, 4], [5, 6]], np.int16),
        y=np.array([7.5]),
    )
    array = member(tmp_path / "a.npz")
    assert (array.shape, array.dtype) == ((3, 2), np.dtype("<i2"))
    assert [row.tolist() for row in array.rows()] == [[1, 2], [3, 4], [5, 6]]
    assert [row.tolist() for row in array.rows()] == [[1, 2], [3, 4], [5, 6]], (
        "a second pass reads anew"
    )


def test_big_endian_numbers_are_read_as_numbers(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([1, 256], ">i4"))
    assert [int(row) for row in open_npy(tmp_path / "a.npy").rows()] == [1, 256]


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    write_member(
        tmp_path / "a.npz",
        npy_bytes(np.array([{"a": 1}], object), allow_pickle=True),
    )
    with pytest.raises(
        BadData,
        match=r"a\.npz: array 'x': holds Python objects, which are never loaded",
    ):
        member(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.array([1j]), np.zeros(2, [("a", "i4")])]
)
def test_what_is_no_real_number_is_refused(
    tmp_path: Path, array: np.ndarray
) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(BadData, match="expected real numbers"):
        open_npy(tmp_path / "a.npy")


@pytest.mark.parametrize("shape", [(2, 3), (4, 3, 5)])
def test_fortran_order_is_read_like_any_other(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    np.save(tmp_path / "a.npy", np.asfortranarray(array))
    np.savez(tmp_path / "a.npz", x=np.asfortranarray(array))
    for stored in (open_npy(tmp_path / "a.npy"), member(tmp_path / "a.npz")):
        assert np.array_equal(stored.whole(), array)
        rows = list(stored.rows())
        assert np.array_equal(rows, array)
        assert all(row.flags.c_contiguous for row in rows)


def test_a_large_array_in_fortran_order_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "a.npy", np.asfortranarray(np.zeros((2, 3))))
    monkeypatch.setattr(stored_arrays, "MOST_IN_FORTRAN_ORDER", 47)
    with pytest.raises(
        BadData,
        match=r"stored in Fortran order.* has 48 bytes \(at most 47.*save numpy\.ascontiguousarray of it",
    ):
        open_npy(tmp_path / "a.npy")


def test_a_truncated_npy_is_refused_before_any_row(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(
        npy_bytes(np.zeros((10, 4), np.float32))[:-1]
    )
    with pytest.raises(
        BadData,
        match=r"truncated: shape \[10, 4\] of float32 needs 160 bytes, 159 are there",
    ):
        open_npy(tmp_path / "a.npy")


def test_a_truncated_npz_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(100))
    data = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(BadData, match=r"is not a readable .npz file"):
        open_npz(tmp_path / "a.npz")


def test_a_text_file_named_npz_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_text("not a zip")
    with pytest.raises(
        BadData,
        match=r"is not a readable \.npz file .*write it with numpy\.savez",
    ):
        open_npz(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]
)
def test_a_flipped_bit_in_the_last_row_fails_the_checksum(
    tmp_path: Path, compression: int
) -> None:
    noise = np.random.default_rng(0).integers(
        0, 256, (20, 10_000), np.uint8
    )  # deflate keeps it as it is
    path = write_member(tmp_path / "a.npz", npy_bytes(noise), compression)
    data = bytearray(path.read_bytes())
    data[data.index(noise[19, 9000:9008].tobytes())] ^= 1
    path.write_bytes(data)
    with pytest.raises(BadData, match=r"cannot be read \(Bad CRC-32.*damaged"):
        list(member(path).rows())


def test_damaged_compressed_bytes_are_refused(tmp_path: Path) -> None:
    path = write_member(
        tmp_path / "a.npz",
        npy_bytes(np.arange(5000, dtype=np.uint16)),
        zipfile.ZIP_DEFLATED,
    )
    data = bytearray(path.read_bytes())
    data[3000:3040] = bytes(40)
    path.write_bytes(data)
    with pytest.raises(BadData, match=r"damaged|truncated|cannot be read"):
        list(member(path).rows())


def test_a_header_that_promises_more_than_the_member_holds_is_refused_without_allocating(
    tmp_path: Path,
) -> None:
    header = npy_bytes(np.zeros(1, np.uint8)).replace(
        b"(1,)", b"(9" + b"9" * 15 + b",)"
    )
    write_member(tmp_path / "a.npz", header)
    with pytest.raises(BadData, match=r"a\.npz: array 'x'"):
        member(tmp_path / "a.npz")


def test_a_member_that_is_no_array_is_refused_only_when_asked_for(
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("bad.npy", b"hello")
        archive.writestr("x.npy", npy_bytes(np.array([3.0])))
    assert [row.tolist() for row in member(tmp_path / "a.npz").rows()] == [3.0]
    with pytest.raises(
        BadData, match=r"array 'bad': not a readable .npy header"
    ):
        member(tmp_path / "a.npz", "bad")


def test_an_unknown_format_version_is_refused_by_number(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x09\x00" + bytes(100))
    with pytest.raises(BadData, match="version"):
        open_npy(tmp_path / "a.npy")
