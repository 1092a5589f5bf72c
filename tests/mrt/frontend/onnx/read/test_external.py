"""Weights that an .onnx file keeps in other files of its folder."""

import hashlib
import os
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest

from mrt import frontend
from mrt.errors import BadModel
from mrt.frontend.onnx.read import external
from tests.support.graphs import assert_same, build, node, run, seeded

_SHAPE = {"x": (1, 2, 4, 4)}


def _proto():
    weights = {
        "w": np.arange(36, dtype=np.float32).reshape(2, 2, 3, 3),
        "b": np.array([1, 2], np.float32),
    }
    return build([node("Conv", "x w b", "y")], _SHAPE, weights)


def _save(folder, *, one_file=True, location="m.onnx.data"):
    path = folder / "m.onnx"
    onnx.save_model(
        _proto(), path, save_as_external_data=True, all_tensors_to_one_file=one_file,
        location=location if one_file else None, size_threshold=0,
    )  # fmt: skip
    return path


def _change(path, **fields):
    """Rewrite what the model says about where the data of its first weight is."""
    proto = onnx.load(path, load_external_data=False)
    kept = {
        entry.key: entry.value
        for entry in proto.graph.initializer[0].external_data
    }
    del proto.graph.initializer[0].external_data[:]
    for key, value in {**kept, **fields}.items():
        if value is not None:
            proto.graph.initializer[0].external_data.add(key=key, value=value)
    path.write_bytes(proto.SerializeToString())


def _refusal(path):
    with pytest.raises(BadModel) as caught:
        frontend.load(path)
    return str(caught.value).replace(str(path), "m.onnx")


@pytest.mark.parametrize("one_file", [True, False])
def test_the_model_means_the_same(one_file, tmp_path):
    loaded = frontend.load(_save(tmp_path, one_file=one_file))
    assert_same(
        run(_proto(), seeded(_SHAPE)), run(loaded.model, seeded(_SHAPE))
    )


def test_the_hash_is_of_the_hashes_of_all_files(tmp_path):
    path = _save(tmp_path)
    parts = [
        hashlib.sha256((tmp_path / name).read_bytes()).digest()
        for name in ("m.onnx", "m.onnx.data")
    ]
    assert (
        frontend.load(path).sha256
        == hashlib.sha256(b"".join(parts)).hexdigest()
    )


def test_a_part_without_a_length_goes_to_the_end(tmp_path):
    path = _save(tmp_path, one_file=False)
    _change(path, offset=None, length=None)
    assert_same(
        run(_proto(), seeded(_SHAPE)),
        run(frontend.load(path).model, seeded(_SHAPE)),
    )


def test_a_file_that_is_missing(tmp_path):
    path = _save(tmp_path)
    (tmp_path / "m.onnx.data").unlink()
    expected = "m.onnx: 'w' keeps its data in 'm.onnx.data', which is not there; put it beside the model"
    assert _refusal(path) == expected


@pytest.mark.parametrize(
    "location", ["../secret", "/etc/passwd", "", "link", "sub/../../secret"]
)
def test_nothing_outside_the_folder_is_read(location, tmp_path):
    (tmp_path / "secret").write_bytes(b"\0" * 144)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "link").symlink_to(tmp_path / "secret")
    path = _save(tmp_path / "models")
    _change(path, location=location)
    expected = f"m.onnx: 'w' keeps its data in '{location}', outside the model's folder; save the model as one file"
    assert _refusal(path) == expected


@pytest.mark.parametrize("location", ["a\0b", "x" * 300, ".", "circle"])
def test_a_name_that_no_file_has(location, tmp_path):
    path = _save(tmp_path)
    (tmp_path / "circle").symlink_to("circle")
    _change(path, location=location)
    assert "which is not there" in _refusal(path)


def test_a_file_cut_short(tmp_path):
    path = _save(tmp_path, one_file=False)
    (tmp_path / "w").write_bytes(b"\0" * 100)
    assert (
        _refusal(path)
        == "m.onnx: 'w': its data ends at byte 144 of a file of 100; the file is cut short"
    )


def test_an_offset_past_the_end(tmp_path):
    path = _save(tmp_path, one_file=False)
    _change(path, offset="145", length=None)
    assert (
        _refusal(path)
        == "m.onnx: 'w': its data ends at byte 145 of a file of 144; the file is cut short"
    )


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("offset", "-1"),
        ("length", "ten"),
        ("length", "²"),
        ("offset", "9" * 20),
    ],
)
def test_a_place_that_is_no_number(key, text, tmp_path):
    path = _save(tmp_path)
    _change(path, **{key: text})
    assert (
        _refusal(path) == f"m.onnx: 'w': {key}={text} of its data is no number"
    )


def test_too_few_bytes_for_the_shape(tmp_path):
    path = _save(tmp_path)
    _change(path, length="140")
    assert (
        _refusal(path)
        == "m.onnx: 'w': its data has 140 bytes; its shape [2, 2, 3, 3] of float needs 144"
    )


def test_the_same_bytes_many_times_are_counted_each_time(tmp_path, monkeypatch):
    path = _save(tmp_path)
    monkeypatch.setattr(external, "LARGEST_DATA", 151)
    assert (
        _refusal(path)
        == "m.onnx: more than 151 bytes of data; the largest model has as many"
    )
    monkeypatch.setattr(external, "LARGEST_DATA", 152)
    assert frontend.load(path).model.graph.num_nodes() == 1


def test_arrays_stay_on_the_disk_until_they_are_read(tmp_path):
    model = frontend.load(_save(tmp_path)).model
    array = model.graph.initializers["w"].const_value.numpy()
    assert isinstance(array, np.memmap) and not array.flags.writeable


def test_a_constant_node_is_read_at_once(tmp_path):
    proto = build([node("Add", "x c", "y")], {"x": (2, 3)})
    constant = onnx.helper.make_node(
        "Constant",
        [],
        ["c"],
        value=onnx.numpy_helper.from_array(np.ones(3, np.float32)),
    )
    constant.attribute[0].t.ClearField("raw_data")
    constant.attribute[0].t.data_location = onnx.TensorProto.EXTERNAL
    constant.attribute[0].t.external_data.add(key="location", value="d")
    proto.graph.node.insert(0, constant)
    (tmp_path / "d").write_bytes(np.arange(3, dtype=np.float32).tobytes())
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    (found,) = run(
        frontend.load(tmp_path / "m.onnx").model,
        {"x": np.zeros((2, 3), np.float32)},
    ).values()
    assert found.tolist() == [[0, 1, 2], [0, 1, 2]]


def test_another_initializer_of_a_type_without_whole_bytes(tmp_path):
    path = _save(tmp_path)
    proto = onnx.load(path, load_external_data=False)
    proto.graph.initializer[0].data_type = onnx.TensorProto.INT4
    path.write_bytes(proto.SerializeToString())
    assert (
        _refusal(path)
        == "m.onnx: 'w' has type INT4; expected floats, integers or booleans"
    )


def test_a_shape_below_zero(tmp_path):
    path = _save(tmp_path)
    proto = onnx.load(path, load_external_data=False)
    proto.graph.initializer[0].dims[:] = [-2, -2, 3, 3]
    path.write_bytes(proto.SerializeToString())
    assert (
        "its data has 144 bytes; its shape [-2, -2, 3, 3] of float needs 144"
        in _refusal(path)
    )


def test_a_weight_of_nothing(tmp_path):
    proto = build(
        [node("Concat", "x w", "y", axis=0)],
        {"x": (2, 3)},
        {"w": np.zeros((0, 3), np.float32)},
    )
    onnx.save_model(
        proto,
        tmp_path / "m.onnx",
        save_as_external_data=True,
        size_threshold=0,
        location="d",
    )
    (tmp_path / "d").touch()
    assert frontend.load(tmp_path / "m.onnx").model.graph.initializers[
        "w"
    ].const_value.shape == [0, 3]


@pytest.mark.slow
def test_a_model_of_more_than_two_gigabytes_is_read_with_little_memory(
    tmp_path,
):
    """In a process of its own; the weights lie in holes of a sparse file, which take no disk."""
    size, count = 16384, 3  # 3 GiB
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(size * size * 4 * count)
    proto = build(
        [
            node("MatMul", "x w0", "a"),
            node("MatMul", "a w1", "b"),
            node("MatMul", "b w2", "y"),
        ],
        {"x": (1, size)},
    )
    for index in range(count):
        tensor = proto.graph.initializer.add(
            name=f"w{index}", data_type=1, dims=[size, size], data_location=1
        )
        for key, value in {
            "location": "w.bin",
            "offset": index * size**2 * 4,
            "length": size**2 * 4,
        }.items():
            tensor.external_data.add(key=key, value=str(value))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    code = (
        "import re, sys; from pathlib import Path; from mrt import frontend\n"
        "frontend.load(Path(sys.argv[1])); status = Path('/proc/self/status').read_text()\n"
        "print(re.search(r'RssAnon:.(.*) kB', status)[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "m.onnx"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (
        int(done.stdout) < 1 << 19
    )  # kilobytes of its own: half a gigabyte, of which none are weights


def test_of_a_file_that_is_hardly_used_only_the_parts_used_are_hashed(
    tmp_path,
):
    """A sparse file of a terabyte takes a block of the disk, and its hash most of an hour."""
    path = _save(tmp_path)
    data = tmp_path / "m.onnx.data"
    os.truncate(data, 1 << 40)
    started = time.process_time()
    first = frontend.load(path).sha256
    assert time.process_time() - started < 2
    with data.open("r+b") as stream:
        stream.seek(1 << 35)
        stream.write(b"never read")
    assert frontend.load(path).sha256 == first
    with data.open("r+b") as stream:
        stream.seek(5)
        stream.write(b"!")
    assert frontend.load(path).sha256 != first


def test_the_parts_used_are_hashed_with_their_places(tmp_path, monkeypatch):
    monkeypatch.setattr(external, "BLOCK", 7)
    monkeypatch.setattr(external, "UNUSED", 0)
    file = tmp_path / "data"
    file.write_bytes(bytes(range(100)))
    parts = [(50, 60), (3, 10), (8, 20), (20, 22)]
    text = b"3..22:" + bytes(range(3, 22)) + b"50..60:" + bytes(range(50, 60))
    assert external._digest(file, parts) == hashlib.sha256(text).digest()
    monkeypatch.setattr(external, "UNUSED", 100 - 2 * 29)
    whole = hashlib.sha256(file.read_bytes()).digest()
    assert external._digest(file, parts) == whole
