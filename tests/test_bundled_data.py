"""The sets in calibration_data/: each file is the one its manifest describes, and the two parts share no image."""

import hashlib
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "calibration_data"
SETS = ("digits8", "digits28")


def manifest(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / name / "manifest.toml").read_text())


def test_every_set_has_a_manifest() -> None:
    assert sorted(
        path.parent.name for path in FOLDER.glob("*/manifest.toml")
    ) == sorted(SETS)
    assert sorted(
        path.name for path in FOLDER.iterdir() if path.is_dir()
    ) == sorted(SETS)


@pytest.mark.parametrize("name", SETS)
def test_every_file_has_the_sha256_of_its_manifest(name: str) -> None:
    listed = manifest(name)["files"]
    present = {
        path.name: path
        for path in (FOLDER / name).iterdir()
        if path.name != "manifest.toml"
    }
    assert set(present) == set(listed)
    for file, path in present.items():
        assert (
            hashlib.sha256(path.read_bytes()).hexdigest()
            == listed[file]["sha256"]
        ), file


@pytest.mark.parametrize("name", SETS)
def test_arrays_have_the_shapes_of_their_manifest(name: str) -> None:
    for file, entry in manifest(name)["files"].items():
        if "arrays" in entry:
            with np.load(FOLDER / name / file) as arrays:
                assert {
                    key: list(arrays[key].shape) for key in arrays.files
                } == entry["arrays"]


@pytest.mark.parametrize("name", SETS)
def test_source_and_licence_are_named(name: str) -> None:
    assert "UCI Machine Learning Repository" in manifest(name)["source"]
    assert manifest(name)["licence"] == "CC BY 4.0"


@pytest.mark.parametrize("name", SETS)
def test_no_image_is_in_both_parts(name: str) -> None:
    with (
        np.load(FOLDER / name / "calibration.npz") as calibration,
        np.load(FOLDER / name / "test.npz") as test,
    ):
        seen = {image.tobytes() for image in calibration["data"]}
        assert len(seen) == 256
        assert not seen & {image.tobytes() for image in test["data"]}


@pytest.mark.parametrize(
    ("name", "right"), [("digits8", 357), ("digits28", 355)]
)
def test_the_logits_beside_the_test_images_have_the_accuracy_of_the_float_model(
    name: str, right: int
) -> None:
    with np.load(FOLDER / name / "test.npz") as test:
        assert int((test["logits"].argmax(axis=1) == test["y"]).sum()) == right
