"""Folders of images: which are taken, in which order, with which class, and how they come to the model's size."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.samples import open_samples
from mrt.errors import BadData

SHAPE = {"data": (1, 3, 2, 2)}


def paint(path: Path, pixels: list[list[list[int]]] | np.ndarray) -> None:
    Image.fromarray(np.array(pixels, np.uint8)).save(path)


def flat(
    path: Path, size: tuple[int, int], color: tuple[int, int, int] = (9, 9, 9)
) -> None:
    Image.new("RGB", size, color).save(path)


def test_without_labels_all_images_are_taken_by_name(tmp_path: Path) -> None:
    flat(tmp_path / "b.png", (2, 2), (2, 2, 2))
    flat(tmp_path / "a.PNG", (2, 2), (1, 1, 1))
    (tmp_path / "notes.txt").write_text("no image")
    samples = open_samples(tmp_path, SHAPE)
    assert samples.labels is None
    assert [sample["data"][0, 0, 0, 0] for sample in samples] == [1, 2]


def test_labels_csv_gives_order_and_classes(tmp_path: Path) -> None:
    flat(tmp_path / "a.png", (2, 2), (1, 1, 1))
    flat(tmp_path / "b.png", (2, 2), (2, 2, 2))
    (tmp_path / "labels.csv").write_text("file,class\nb.png,7\na.png,3\n")
    samples = open_samples(tmp_path, SHAPE)
    assert samples.labels == (7, 3)
    assert [sample["data"][0, 0, 0, 0] for sample in samples] == [2, 1]
    assert open_samples(tmp_path, SHAPE, limit=1).labels == (7,)


def test_pixels_are_rgb_in_nchw(tmp_path: Path) -> None:
    paint(
        tmp_path / "a.png", [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]
    )
    (sample,) = open_samples(tmp_path, SHAPE)
    assert sample["data"].tolist() == [
        [[[1, 4], [7, 10]], [[2, 5], [8, 11]], [[3, 6], [9, 12]]]
    ]


def test_pixels_are_rgb_in_nhwc_where_the_model_wants_that(
    tmp_path: Path,
) -> None:
    flat(tmp_path / "a.png", (6, 5), (1, 2, 3))
    (sample,) = open_samples(tmp_path, {"data": (1, 5, 6, 3)})
    assert sample["data"][0, 4, 5].tolist() == [1, 2, 3]


def test_a_model_of_one_channel_sees_grey(tmp_path: Path) -> None:
    flat(tmp_path / "a.png", (2, 2), (10, 10, 10))
    (sample,) = open_samples(tmp_path, {"data": (1, 1, 2, 2)})
    assert sample["data"].tolist() == [[[[10, 10], [10, 10]]]]


def test_crop_keeps_the_centre(tmp_path: Path) -> None:
    picture = np.arange(16, dtype=np.uint8).reshape(4, 4)
    paint(tmp_path / "a.png", np.stack([picture] * 3, axis=-1))
    (sample,) = open_samples(tmp_path, SHAPE, Preprocessing(crop=2))
    assert sample["data"][0, 0].tolist() == [[5, 6], [9, 10]]


def test_resize_is_of_the_shorter_side(tmp_path: Path) -> None:
    flat(tmp_path / "a.png", (40, 20))
    with pytest.raises(
        BadData,
        match=r"a\.png: is 8x8 pixels .* input is 2x2; give --resize 2,2,",
    ):
        next(
            iter(open_samples(tmp_path, SHAPE, Preprocessing(resize=8, crop=8)))
        )
    (sample,) = open_samples(
        tmp_path, {"data": (1, 3, 8, 16)}, Preprocessing(resize=8)
    )
    assert sample["data"].shape == (1, 3, 8, 16)


def test_with_no_size_given_the_centre_seven_eighths_is_seen(
    tmp_path: Path,
) -> None:
    picture = np.zeros((8, 8, 3), np.uint8)
    picture[:, 0] = picture[:, 7] = (
        255  # what the crop from 8 to 7 must lose on the right
    )
    paint(tmp_path / "a.png", picture)
    (sample,) = open_samples(tmp_path, {"data": (1, 3, 7, 7)})
    assert sample["data"][0, 0, 0].tolist() == [255, 0, 0, 0, 0, 0, 0]


def test_an_image_too_small_for_its_crop_is_refused(tmp_path: Path) -> None:
    flat(tmp_path / "a.png", (4, 4))
    with pytest.raises(
        BadData,
        match=r"a\.png: is 4x4 pixels as resized and cropped, but the model's input is 8x8; "
        r"give --resize 8,8, or --resize 9 --crop 8, or neither",
    ):
        next(
            iter(
                open_samples(
                    tmp_path, {"data": (1, 3, 8, 8)}, Preprocessing(crop=8)
                )
            )
        )


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        BadData,
        match=r"holds no images \(.jpg, .jpeg, .png, \.\.\.\), no sub-folders with some, and no labels.csv",
    ):
        open_samples(tmp_path, SHAPE)


def test_a_file_that_is_no_image_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_text("not a picture")
    with pytest.raises(BadData, match=r"a\.jpg: cannot be read as an image"):
        next(iter(open_samples(tmp_path, SHAPE)))


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.float32])
def test_pixels_of_more_than_8_bits_are_refused(
    dtype: type, tmp_path: Path
) -> None:
    """Once they were cut off at 255: all white."""
    Image.fromarray(np.full((2, 2), 1000, dtype)).save(tmp_path / "a.tif")
    with pytest.raises(BadData, match=r"a\.tif: its pixels have more than 8"):
        next(iter(open_samples(tmp_path, SHAPE)))


def test_a_truncated_image_is_refused_by_name(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(data[: len(data) // 2])
    with pytest.raises(BadData, match=r"a\.png: cannot be read as an image"):
        next(iter(open_samples(tmp_path, SHAPE)))


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("gone.png,1", "row 1 names 'gone.png', which does not exist"),
        ("../a.png,1", "row 1 names '../a.png', which lies outside the folder"),
        (
            "deep/../../a.png,1",
            "row 1 names 'deep/../../a.png', which lies outside the folder",
        ),
        ("circle.png,1", "row 1 names 'circle.png', which does not exist"),
        ("a\0.png,1", "row 1 names 'a\\x00.png', which does not exist"),
        (
            "a.png,cat",
            "row 1 is 'a.png,cat', expected a file name and the number of its class",
        ),
        ("a.png,-1", "row 1 is 'a.png,-1', expected a file name"),
        ("a.png", "row 1 is 'a.png', expected a file name"),
        (
            "a.png,100000001",
            "row 1 has the class 100000001; expected at most 100000000",
        ),
        (
            "a.png," + "9" * 5000,
            "row 1 has the class 9999999999...; expected at most 100000000",
        ),
    ],
)
def test_rows_of_labels_csv_that_lie_are_refused(
    tmp_path: Path, row: str, sentence: str
) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    flat(folder / "a.png", (2, 2))
    flat(tmp_path / "a.png", (2, 2))
    (folder / "circle.png").symlink_to("circle.png")
    (folder / "labels.csv").write_text(f"file,class\n{row}\n")
    with pytest.raises(BadData) as caught:
        open_samples(folder, SHAPE)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("table", [False, True])
def test_pictures_that_are_links_are_read(tmp_path: Path, table: bool) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    flat(tmp_path / "elsewhere.png", (2, 2))
    (folder / "linked.png").symlink_to(tmp_path / "elsewhere.png")
    if table:
        (folder / "labels.csv").write_text("file,class\nlinked.png,3\n")
    samples = open_samples(folder, SHAPE)
    assert len(list(samples)) == 1
    assert samples.labels == ((3,) if table else None)


def test_a_model_that_eats_no_pictures_refuses_a_folder(tmp_path: Path) -> None:
    flat(tmp_path / "a.png", (2, 2))
    with pytest.raises(
        BadData,
        match=r"a picture does not fit the model's input \[1, 10\]; give its samples as .npz",
    ):
        next(iter(open_samples(tmp_path, {"data": (1, 10)})))


def halves(path: Path) -> None:
    """4 pixels wide, 2 high: the left half black, the right half of 200."""
    row = [[0] * 3] * 2 + [[200] * 3] * 2
    paint(path, [row, row])


def test_resize_to_height_and_width_leaves_nothing_out(tmp_path: Path) -> None:
    halves(tmp_path / "a.png")
    (sample,) = open_samples(
        tmp_path, SHAPE, Preprocessing(resize=(2, 2), resample="box")
    )
    assert sample["data"][0, 0].tolist() == [[0, 200], [0, 200]]
    (sample,) = open_samples(
        tmp_path, {"data": (1, 3, 1, 2)}, Preprocessing(resize=(1, 2))
    )
    assert sample["data"].shape == (1, 3, 1, 2)


def test_the_filter_of_resizing_is_chosen(tmp_path: Path) -> None:
    row = [[0] * 3, [0] * 3, [0] * 3, [255] * 3]
    paint(tmp_path / "a.png", [row] * 4)
    shape = {"data": (1, 3, 2, 2)}
    found = {}
    for name in ("nearest", "box", "bilinear"):
        step = Preprocessing(resize=2, resample=name)
        (sample,) = open_samples(tmp_path, shape, step)
        found[name] = sample["data"][0, 0, 0].tolist()
    # Box is the mean of two pixels, nearest one of them; bilinear reaches over the middle.
    assert found["box"] == [0, 128]
    assert found["nearest"][1] in (0, 255)
    assert 0 < found["bilinear"][1] < 255 and found["bilinear"] != found["box"]


def test_crop_of_height_and_width(tmp_path: Path) -> None:
    halves(tmp_path / "a.png")
    (sample,) = open_samples(
        tmp_path, {"data": (1, 3, 1, 4)}, Preprocessing(crop=(1, 4))
    )
    assert sample["data"][0, 0].tolist() == [[0, 0, 200, 200]]


def by_class(folder: Path, *places: str) -> None:
    """One image in each sub-folder, in the colour of its number, counted from 1."""
    for number, place in enumerate(places, 1):
        (folder / place).mkdir()
        flat(folder / place / "a.png", (2, 2), (number,) * 3)


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ((), (0, 1, 2)),
        (("owl", "dog", "cat"), (2, 1, 0)),
        (("owl", "eel", "dog", "cat", "bat"), (3, 2, 0)),
        (("Cat", "Dog", "Owl"), (0, 1, 2)),
        (("Cat", "Dog"), None),
        (("cat", "Dog", "x", "y"), None),
    ],
)
def test_sub_folders_are_classes_in_the_order_of_their_names_or_of_the_list(
    classes, labels, tmp_path: Path
) -> None:
    by_class(tmp_path, "owl", "cat", "dog")
    (tmp_path / ".cache").mkdir()
    samples = open_samples(tmp_path, SHAPE, classes=classes)
    assert samples.labels == labels
    assert [sample["data"][0, 0, 0, 0] for sample in samples] == [2, 3, 1]
    limited = open_samples(tmp_path, SHAPE, limit=2, classes=classes)
    assert limited.labels == (None if labels is None else labels[:2])


def test_labels_csv_and_images_beside_them_win_over_sub_folders(
    tmp_path: Path,
) -> None:
    by_class(tmp_path, "cat", "dog")
    (tmp_path / "labels.csv").write_text("file,class\ndog/a.png,7\n")
    assert open_samples(tmp_path, SHAPE).labels == (7,)
    (tmp_path / "labels.csv").unlink()
    flat(tmp_path / "z.png", (2, 2))
    samples = open_samples(tmp_path, SHAPE)
    assert (len(samples), samples.labels) == (1, None)


def test_a_sub_folder_without_images_is_refused_by_name(tmp_path: Path) -> None:
    """It would shift the numbers of the classes behind it."""
    by_class(tmp_path, "cat", "dog")
    (tmp_path / "boxes").mkdir()
    with pytest.raises(BadData, match="boxes: holds no images, but the other"):
        open_samples(tmp_path, SHAPE)


def test_a_grey_picture_for_a_model_of_colour_is_noted_once(
    tmp_path: Path,
) -> None:
    flat(tmp_path / "a.png", (2, 2))
    for name in ("b.png", "c.png"):
        Image.new("L", (2, 2), 9).save(tmp_path / name)
    samples = open_samples(tmp_path, SHAPE)
    assert [list(samples)[1]["data"].tolist() for _ in range(2)]
    (note,) = samples.notes
    assert note.startswith(f"{tmp_path / 'b.png'} is grey, but the model takes")
    grey = open_samples(tmp_path, {"data": (1, 1, 2, 2)})
    assert list(grey) and not grey.notes


def test_pictures_that_lose_their_edges_unasked_are_noted_once(
    tmp_path: Path,
) -> None:
    for name in ("a.png", "b.png"):
        flat(tmp_path / name, (64, 48))
    samples = open_samples(tmp_path, {"data": (1, 3, 24, 20)})
    assert len(list(samples)) == 2
    assert samples.notes == [
        "pictures were resized to 27 and cropped to 24,20, as for ImageNet; --resize 24,20 keeps their edges"
    ]
    for shape, step in (
        ((1, 3, 24, 24), Preprocessing(resize=(24, 24))),
        ((1, 3, 24, 24), Preprocessing(resize=27, crop=24)),
        ((1, 3, 48, 64), Preprocessing()),
    ):
        asked = open_samples(tmp_path, {"data": shape}, step)
        assert list(asked) and not asked.notes


def test_a_sample_is_called_by_its_file_in_the_folder(tmp_path: Path) -> None:
    for place in ("cat", "dog"):
        (tmp_path / place).mkdir()
        flat(tmp_path / place / "a.png", (2, 2))
    samples = open_samples(tmp_path, SHAPE)
    assert [samples.name_of(index) for index in range(2)] == [
        *("cat/a.png", "dog/a.png")
    ]
