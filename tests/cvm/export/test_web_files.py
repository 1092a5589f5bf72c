"""What the page reads and writes, and which inputs it draws, under node."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
import pytest

from cvm.export.web.folder import _text as package_text
from cvm.export.web.page import PARTS, _text
from tests.support.web_programs import needs_web, node

pytestmark = needs_web()


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    (folder / "package.json").write_text('{"type": "module"}')
    for name in ("sha256.js", "tensors.js"):
        (folder / name).write_text(package_text("package", name))
    for name in ("files.js", "pictures.js"):
        assert name in PARTS
        (folder / name).write_text(_text(name))
    return folder


def answer(modules, name, imports, expression):
    script = f'import {{ {imports} }} from "./{name}"; console.log(JSON.stringify({expression}));'
    (modules / "ask.js").write_text(script)
    return json.loads(node(modules, "ask.js"))


def saved(array, **how):
    file = io.BytesIO()
    np.save(file, array, **how)
    return base64.b64encode(file.getvalue()).decode()


def read(modules, text):
    file = f'Uint8Array.from(atob("{text}"), (c) => c.charCodeAt(0))'
    parts = "[array.shape, [...array.values], array.real]"
    call = f"((array) => {parts})(readNpy({file}))"
    return answer(modules, "files.js", "readNpy", call)


@pytest.mark.parametrize(
    ("dtype", "values", "real"),
    [
        ("bool", [0, 1, 1, 0], False),
        ("uint8", [0, 255, 7, 1], False),
        ("int8", [-128, 127, 0, 1], False),
        ("<i2", [-32768, 32767, 0, 258], False),
        (">i4", [-(2**31), 2**31 - 1, 0, 1], False),
        ("<i8", [-(2**53), 2**53 - 1, 0, 1], False),
        ("<f4", [0.5, -1.25, 0, 3], True),
        (">f8", [0.1, -1e300, 0, 3], True),
    ],
)
def test_an_npy_file_is_read_as_numpy_wrote_it(modules, dtype, values, real):
    array = np.array(values).astype(dtype).reshape(2, 2)
    assert read(modules, saved(array)) == [[2, 2], values, real]


def test_an_npy_file_of_one_number_has_no_dimensions(modules):
    assert read(modules, saved(np.int32(7))) == [[], [7], False]


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.ones((2, 3), order="F"), np.array([1j])]
)
def test_an_npy_file_of_another_kind_is_refused(modules, array):
    with pytest.raises(AssertionError, match=r"an \.npy file"):
        read(modules, saved(array))


@pytest.mark.parametrize(
    ("dtype", "shape"), [("i8", (2, 2)), ("i16", (2,)), ("i32", ())]
)
def test_an_npy_file_is_written_as_numpy_reads_it(modules, dtype, shape):
    own = {"i8": np.int8, "i16": np.int16, "i32": np.int32}[dtype]
    array = (np.arange(int(np.prod(shape))) - 2).astype(own).reshape(shape)
    call = f'Array.from(npyOf("{dtype}", {list(shape)}, Uint8Array.from({list(array.tobytes())})))'
    written = bytes(answer(modules, "files.js", "npyOf", call))
    found = np.load(io.BytesIO(written))
    assert found.dtype == own and found.shape == shape
    assert found.tolist() == array.tolist()


@pytest.mark.parametrize(
    ("text", "real"),
    [("[1, [2]]", False), ('{"x": [1.5]}', True), ("[1.0]", False)],
)
def test_json_with_a_fraction_is_real(modules, text, real):
    call = f"readJson({json.dumps(text)}).real"
    assert answer(modules, "files.js", "readJson", call) is real


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ([1, 1, 8, 9], [8, 9, 1, 2 * 9 + 3]),
        ([1, 8, 9, 3], [8, 9, 3, (2 * 9 + 3) * 3]),
        ([1, 3, 8, 9], [8, 9, 3, 2 * 9 + 3]),
        ([8, 9], [8, 9, 1, 2 * 9 + 3]),
        ([1, 8, 9], [8, 9, 1, 2 * 9 + 3]),
        ([1, 8, 9, 2], None),
        ([2, 1, 8, 8], None),
        ([1, 10], None),
        ([1, 1, 9, 1], None),
        ([1, 1, 8, 2000], None),
    ],
)
def test_a_picture_is_known_by_its_shape(modules, shape, expected):
    call = f"((l) => l && [l.height, l.width, l.channels, l.at(2, 3, 0)])(layoutOf({shape}))"
    assert answer(modules, "pictures.js", "layoutOf", call) == expected


@pytest.mark.parametrize(
    ("port", "lowest", "ends"),
    [
        ({"dtype": "u8", "scale": 1, "zero_point": 0}, False, [0, 255]),
        ({"dtype": "i8", "scale": 0.1, "zero_point": -28}, False, [-28, 127]),
        ({"dtype": "i8", "scale": 0.1, "zero_point": -28}, True, [-128, 127]),
        ({"dtype": "i8", "scale": 0.1, "zero_point": -500}, False, [-128, 127]),
        ({"dtype": "i8", "scale": None, "zero_point": None}, False, [-128, 127]),
    ],
)  # fmt: skip
def test_black_and_white_are_ends_of_the_interval(modules, port, lowest, ends):
    low, high = (0, 255) if port["dtype"] == "u8" else (-128, 127)
    full = json.dumps(port | {"lo": low, "hi": high})
    call = f"brightness({full}, {json.dumps(lowest)})"
    assert answer(modules, "pictures.js", "brightness", call) == ends


@pytest.mark.parametrize(
    ("port", "prepared"),
    [
        ({"scale": 1, "zero_point": 0, "lo": 0}, False),  # bytes
        ({"scale": 1 / 255, "zero_point": -128, "lo": -128}, False),  # 0 to 1
        ({"scale": 0.02, "zero_point": -15, "lo": -128}, True),
        ({"scale": None, "zero_point": None, "lo": -128}, False),
    ],
)
def test_prepared_numbers_lie_below_black_too(modules, port, prepared):
    call = f"takesPrepared({json.dumps(port)})"
    assert answer(modules, "pictures.js", "takesPrepared", call) is prepared


def test_a_board_is_averaged_over_each_pixel(modules):
    """A board of 8 by 8 with its left half red, for 4 by 4 pixels of three channels, planes apart."""
    port = {"dtype": "u8", "scale": 1, "zero_point": 0, "lo": 0, "hi": 255}
    how = "{ blackIsLowest: false, inverted: false }"
    board = "Array.from({ length: 256 }, (_, i) => (i % 4 === 0 && (i / 4) % 8 < 3 ? 255 : 0))"
    call = f"[...integersOfBoard({board}, 8, {json.dumps(port)}, layoutOf([1, 3, 4, 4]), {how})]"
    names = "integersOfBoard, layoutOf"
    found = answer(modules, "pictures.js", names, call)
    assert found[:16] == [255, 128, 0, 0] * 4
    assert set(found[16:]) == {0}
