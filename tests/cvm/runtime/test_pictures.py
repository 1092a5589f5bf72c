"""Picture files as the input of `cvm run`: their pixels as they are, or a sentence."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cvm.file import format as file_format
from cvm.program import Input, Instruction, Output, Program, TensorType
from tests.support.command import cvm, said

RNG = np.random.default_rng(4)
PIXELS = RNG.integers(0, 256, (3, 4, 6, 3)).astype(np.uint8)


def _program(
    path: Path,
    shape: tuple[int, ...] = (1, 4, 6, 3),
    dtype: str = "u8",
    count: int = 1,
) -> Path:
    """The pictures turned round from left to right."""
    inputs = tuple(
        Input(
            f"x{index}",
            TensorType(dtype, shape),
            0,
            127 if dtype == "i8" else 255,
        )
        for index in range(count)
    )
    steps = (Instruction("reverse", (0,), {"axis": 2}),)
    file_format.write(Program(inputs, (), steps, (Output("y", count),)), path)
    return path


def _outputs(program: Path, given: Path) -> np.ndarray:
    result = cvm(
        "run", program, "--input", given, "-o", program.with_suffix(".npz")
    )
    assert result.exit_code == 0, result.output
    return np.load(program.with_suffix(".npz"))["y"]


def test_a_folder_of_pictures_is_read_in_the_order_of_their_names(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name, image in zip(("c.bmp", "a.png", "b.PNG"), PIXELS, strict=True):
        Image.fromarray(image).save(folder / name)
    (folder / "labels.csv").write_text("file,class\n")
    found = _outputs(_program(tmp_path / "p.cvm"), folder)
    assert found.tolist() == PIXELS[[1, 2, 0], :, ::-1].tolist()


def test_every_answer_stands_under_the_name_of_its_picture(tmp_path):
    """They once were numbered, and only five of them."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    names = ["b.png", "z.png", "a.bmp", "c.PNG", "d.png", "e.png", "f.png"]
    for level, name in enumerate(names):
        pixels = np.full((4, 6, 3), 10 * level, np.uint8)
        Image.fromarray(pixels).save(folder / name)
    program = _program(tmp_path / "p.cvm")
    lines = cvm("run", program, "--input", folder).stdout.splitlines()
    assert lines[:2] == ["7 samples", "y: uint8 [7, 4, 6, 3], 0..60"]
    assert lines[2:] == [
        f"  {name}: {' '.join([f'{10 * names.index(name)}'] * 6)} ..."
        for name in sorted(names)
    ]
    one = cvm("run", program, "--input", folder / "z.png").stdout
    assert "  z.png: 10 10 10 10 10 10 ...\n" in one


def test_one_picture_is_one_sample_and_a_grey_one_serves_a_program_of_colours(
    tmp_path,
):
    Image.fromarray(PIXELS[0, :, :, 0]).save(tmp_path / "grey.png")
    found = _outputs(_program(tmp_path / "p.cvm"), tmp_path / "grey.png")
    assert (
        found[0, :, ::-1].tolist()
        == np.repeat(PIXELS[0, :, :, :1], 3, axis=2).tolist()
    )


def test_a_receipt_of_a_picture_replays_with_the_array_of_its_pixels(tmp_path):
    Image.fromarray(PIXELS[0]).save(tmp_path / "x.png")
    np.save(tmp_path / "x.npy", PIXELS[:1])
    program, receipt = _program(tmp_path / "p.cvm"), tmp_path / "r.json"
    assert (
        cvm(
            "run", program, "--input", tmp_path / "x.png", "--receipt", receipt
        ).exit_code
        == 0
    )
    assert (
        cvm("replay", program, receipt, "--input", tmp_path / "x.npy").exit_code
        == 0
    )


@pytest.mark.parametrize(
    ("what", "found"),
    [
        (
            {"shape": (1, 4, 5, 3)},
            "is 6x4 pixels, the input 'x0' 5x4; resize or crop it first",
        ),
        (
            {"dtype": "i16"},
            "pictures are for one input u8[1,H,W,C]; this program's is 'x0' i16[1, 4, 6, 3]; give an .npz",
        ),
        ({"shape": (1, 3, 4, 6)}, "this program's is 'x0' u8[1, 3, 4, 6]"),
        (
            {"count": 2},
            "this program's is 'x0' u8[1, 4, 6, 3], 'x1' u8[1, 4, 6, 3]",
        ),
    ],
)
def test_what_does_not_fit_is_refused(what, found, tmp_path):
    Image.fromarray(PIXELS[0]).save(tmp_path / "x.png")
    sentence = said(
        cvm(
            "run",
            _program(tmp_path / "p.cvm", **what),
            "--input",
            tmp_path / "x.png",
        ),
        2,
    )
    assert found in sentence and str(tmp_path / "x.png") in sentence


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.float32])
def test_pixels_of_more_than_8_bits_are_refused(dtype, tmp_path):
    """Once they were cut off at 255: all white."""
    path = tmp_path / "x.tiff"
    Image.fromarray(np.full((4, 6), 1000, dtype)).save(path)
    program = _program(tmp_path / "p.cvm", shape=(1, 4, 6, 1))
    sentence = said(cvm("run", program, "--input", path), 2)
    assert "x.tiff: its pixels have more than 8 bits" in sentence


def test_files_that_are_no_pictures_and_empty_folders_are_refused(tmp_path):
    program = _program(tmp_path / "p.cvm")
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\nand no more")
    (tmp_path / "empty").mkdir()
    assert "x.png: cannot be read as a picture" in said(
        cvm("run", program, "--input", tmp_path / "x.png"), 2
    )
    assert "y.png" in said(
        cvm("run", program, "--input", tmp_path / "y.png"), 2
    )
    assert "empty: holds no pictures (.png, .jpg" in said(
        cvm("run", program, "--input", tmp_path / "empty"), 2
    )
    folder = tmp_path / "by_class"
    for name in ("cat", "dog"):
        (folder / name).mkdir(parents=True)
    said_of_folders = said(cvm("run", program, "--input", folder), 2)
    assert said_of_folders.endswith(
        f", only folders (cat, dog), which are not looked into: --input {folder / 'cat'}"
    )
