"""fixed_value_warnings: what is said of data that hold an input which --value fixes."""

import numpy as np
import pytest

from mrt.config import Config, DataSettings, ModelSettings
from mrt.fixed_values import MOST_BYTES, fixed_value_warnings


def warnings_of(path, values):
    return fixed_value_warnings(
        Config(model=ModelSettings(values=values)), DataSettings(path=path)
    )


def stored(folder, **arrays):
    path = folder / "d.npz"
    np.savez(path, **arrays)
    return path


def test_other_numbers_than_the_fixed_one_are_named(tmp_path):
    path = stored(tmp_path, x=np.zeros((3, 2)), n=np.array([3, 12, 7]))
    assert warnings_of(path, {"n": 12.0}) == [
        "d.npz: 'n' is 3 to 12 in the data and 12 in the program, by --value: its answers, and the figures here, "
        "are those for that value alone"
    ]


@pytest.mark.parametrize(
    "array",
    [
        np.full(3, 12),
        np.array(12),
        np.zeros(0),
        np.array(["a", "b"]),
        np.zeros(MOST_BYTES // 8 + 1),
    ],
    ids=["the same", "one number", "none", "texts", "long"],
)
def test_nothing_is_said_of_what_is_the_same_or_cannot_be_compared(
    tmp_path, array
):
    assert warnings_of(stored(tmp_path, n=array), {"n": 12.0}) == []


def test_only_inputs_that_are_fixed_are_looked_at(tmp_path):
    path = stored(tmp_path, x=np.arange(4.0))
    assert warnings_of(path, {}) == warnings_of(path, {"n": 1.0}) == []


@pytest.mark.parametrize("name", ["missing.npz", "d.npy", "text.npz"])
def test_files_that_cannot_be_read_are_left_to_others(tmp_path, name):
    path = tmp_path / name
    if name == "d.npy":
        np.save(path, np.zeros(2))
    if name == "text.npz":
        path.write_text("no archive")
    assert warnings_of(path, {"n": 1.0}) == []
