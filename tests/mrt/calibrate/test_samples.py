"""Samples from .npz, .npy and nowhere: which arrays are taken, how many samples, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.samples import evenly_spaced, open_samples, synthetic_samples
from mrt.errors import BadData


def save(path: Path, **arrays: np.ndarray) -> Path:
    np.savez_compressed(path / "a.npz", **arrays)
    return path / "a.npz"


def listed(samples) -> list[dict]:
    return [
        {name: value.tolist() for name, value in sample.items()}
        for sample in samples
    ]


def test_the_only_input_is_read_from_x_and_labels_from_y(
    tmp_path: Path,
) -> None:
    path = save(
        tmp_path,
        x=np.array([[1, 2], [3, 4]], np.uint8),
        y=np.array([5, 6]),
        other=np.zeros(9),
    )
    samples = open_samples(path, {"data": (1, 2)})
    assert (len(samples), samples.labels, samples.names) == (
        2,
        (5, 6),
        ("data",),
    )
    assert listed(samples) == [{"data": [[1, 2]]}, {"data": [[3, 4]]}]
    assert next(iter(samples))["data"].dtype == np.float32


def test_several_inputs_are_read_by_name(tmp_path: Path) -> None:
    path = save(tmp_path, a=np.array([[1], [2]]), b=np.array([[3, 4], [5, 6]]))
    samples = open_samples(path, {"b": (1, 2), "a": (1, 1)})
    assert samples.labels is None
    assert listed(samples) == [
        {"b": [[3, 4]], "a": [[1]]},
        {"b": [[5, 6]], "a": [[2]]},
    ]


def test_arrays_and_labels_may_have_other_names(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        x_test=np.array([[1], [2]]),
        y_test=np.array([[0], [1]]),
        x=np.array([[9]]),
    )
    samples = open_samples(
        path, {"data": (1, 1)}, arrays={"x": "x_test"}, labels="y_test"
    )
    assert samples.labels == (0, 1)
    assert listed(samples) == [{"data": [[1]]}, {"data": [[2]]}]


def test_the_plain_names_stand_in_for_other_names_that_are_absent(
    tmp_path: Path,
) -> None:
    path = save(tmp_path, x=np.array([[7]]), y=np.array([1]))
    samples = open_samples(
        path, {"data": (1, 1)}, arrays={"x": "x_test"}, labels="y_test"
    )
    assert (listed(samples), samples.labels) == ([{"data": [[7]]}], (1,))


def test_a_limit_takes_samples_and_labels_at_equal_distances(
    tmp_path: Path,
) -> None:
    path = save(tmp_path, x=np.arange(10).reshape(10, 1), y=np.arange(10))
    samples = open_samples(path, {"data": (1, 1)}, limit=4)
    assert evenly_spaced(10, 4) == [0, 2, 5, 7]
    assert [sample["data"].item() for sample in samples] == [0, 2, 5, 7]
    assert samples.labels == (0, 2, 5, 7)
    assert len(open_samples(path, {"data": (1, 1)}, limit=11)) == 10


def test_an_input_called_y_is_no_label(tmp_path: Path) -> None:
    path = save(tmp_path, y=np.array([[1, 2], [3, 4]]))
    samples = open_samples(path, {"y": (1, 2)})
    assert samples.labels is None
    assert listed(samples) == [{"y": [[1, 2]]}, {"y": [[3, 4]]}]
    both = save(
        tmp_path, x=np.ones((2, 1)), y=np.ones((2, 1)), classes=np.array([7, 8])
    )
    inputs = {"x": (1, 1), "y": (1, 1)}
    assert open_samples(both, inputs).labels is None
    assert open_samples(both, inputs, labels="classes").labels == (7, 8)


def test_samples_are_taken_as_they_are_chosen_with_their_labels(
    tmp_path: Path,
) -> None:
    path = save(tmp_path, x=np.arange(5)[:, None], y=np.arange(10, 15))
    samples = open_samples(
        path, {"x": (1, 1)}, limit=2, choose=lambda total: [1, total - 1]
    )
    assert listed(samples) == [{"x": [[1]]}, {"x": [[4]]}]
    assert (len(samples), samples.labels) == (2, (11, 14))


def test_an_npy_is_the_only_input(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1.5], [2.5]]))
    assert listed(open_samples(tmp_path / "a.npy", {"data": (1, 1)})) == [
        {"data": [[1.5]]},
        {"data": [[2.5]]},
    ]


def test_a_first_dimension_above_one_is_part_of_the_sample(
    tmp_path: Path,
) -> None:
    whole = np.arange(4.0).reshape(2, 2)
    np.save(tmp_path / "one.npy", whole)
    np.save(tmp_path / "two.npy", np.stack([whole, whole + 4]))
    assert listed(open_samples(tmp_path / "one.npy", {"a": (2, 2)})) == [
        {"a": [[0, 1], [2, 3]]}
    ]
    assert len(open_samples(tmp_path / "two.npy", {"a": (2, 2)})) == 2


def test_preprocessing_is_given_for_all_inputs_or_by_name(
    tmp_path: Path,
) -> None:
    path = save(tmp_path, a=np.array([[8]]), b=np.array([[8]]))
    shapes = {"a": (1, 1), "b": (1, 1)}
    assert listed(open_samples(path, shapes, Preprocessing(scale=0.5))) == [
        {"a": [[4]], "b": [[4]]}
    ]
    assert listed(
        open_samples(path, shapes, {"b": Preprocessing(scale=0.5)})
    ) == [{"a": [[8]], "b": [[4]]}]
    with pytest.raises(
        BadData,
        match="preprocessing is given for 'c', but the model's inputs are a, b",
    ):
        open_samples(path, shapes, {"c": Preprocessing()})


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (
            {"z": np.zeros((1, 2))},
            "has no array 'data' or 'x' for the model's input; it has z; rename one, or name it",
        ),
        (
            {"x": np.zeros((2, 2), complex)},
            "array 'x': holds complex128, expected real numbers",
        ),
        (
            {"x": np.zeros((1, 2)), "y": np.array(["cat"])},
            "array 'y': holds <U3, expected real numbers",
        ),
        ({"x": np.zeros((0, 2))}, "holds no samples; expected at least one"),
        (
            {"x": np.float64(3)},
            r"is a single number, expected samples of shape \[1, 2\] along the first axis",
        ),
        (
            {"x": np.zeros((4, 3))},
            r"a sample of shape \[3\] \(layout 'as is'\) does not fit the model's input \[1, 2\]",
        ),
        (
            {"x": np.zeros((4, 15, 2))},
            r"input \[1, 2\]; if the first dimension of 'data' counts no samples, give --shape data=15,2; "
            r"if it does, give the array with a shape of \[N,2\]$",
        ),
        (
            {"x": np.zeros((2, 2)), "y": np.zeros(3, int)},
            r"array 'y': has shape \[3\], expected one class for each of 2",
        ),
    ],
)
def test_arrays_that_do_not_suit_are_refused_on_opening(
    tmp_path: Path, arrays, sentence: str
) -> None:
    with pytest.raises(BadData, match=sentence):
        open_samples(save(tmp_path, **arrays), {"data": (1, 2)})


@pytest.mark.parametrize(
    "values", [[0, -1], [0.5, 1.0], [np.nan, 0.0], [0.0, np.inf], [[0.5], [1]]]
)
def test_a_y_that_holds_no_classes_is_no_label(tmp_path: Path, values) -> None:
    path = save(tmp_path, x=np.zeros((2, 2)), y=np.array(values))
    samples = open_samples(path, {"data": (1, 2)})
    assert samples.labels is None
    assert len(listed(samples)) == 2
    assert samples.notes == [
        f"{path}: array 'y' holds no numbers of classes and is not read as labels; "
        "a regression is measured by mrt evaluate --metric, which gets it"
    ]
    assert samples.targets is not None
    assert np.array_equal(samples.targets, values, equal_nan=True)
    with pytest.raises(BadData, match=r"expected the numbers of classes|shape"):
        open_samples(path, {"data": (1, 2)}, labels="y")


def test_targets_are_those_of_the_samples_that_are_taken(
    tmp_path: Path,
) -> None:
    x, y = np.zeros((4, 2)), np.array([0.5, 1.5, 2.5, 3.5])
    samples = open_samples(
        save(tmp_path, x=x, y=y), {"data": (1, 2)}, choose=lambda _: [1, 3]
    )
    assert samples.targets is not None
    assert samples.targets.tolist() == [1.5, 3.5]


def test_targets_without_a_row_for_each_sample_are_not_read(
    tmp_path: Path,
) -> None:
    path = save(tmp_path, x=np.zeros((2, 2)), y=np.array([0.5, 1.5, 2.5]))
    samples = open_samples(path, {"data": (1, 2)})
    assert samples.targets is None
    assert samples.notes == [
        f"{path}: array 'y' of shape [3] is not read: it holds no numbers of classes, and no row for each of 2 samples"
    ]


def test_several_reals_for_each_sample_are_no_labels(tmp_path: Path) -> None:
    targets = np.full((2, 3), 0.25)
    path = save(tmp_path, x=np.zeros((2, 2)), y=targets)
    assert open_samples(path, {"data": (1, 2)}).labels is None


def test_samples_without_elements_are_refused_before_they_are_counted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((10**12, 0), np.float32))
    with pytest.raises(BadData) as caught:
        open_samples(path, {"data": (1, 2)})
    assert str(caught.value) == (
        f"{path}: has shape [1000000000000, 0], whose samples have no elements; expected [1, 2] for each"
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_sample_with_a_value_that_is_not_finite_is_refused_by_number(
    tmp_path: Path, bad: float
) -> None:
    path = save(tmp_path, x=np.array([[1.0, 2.0], [3.0, bad]]))
    with pytest.raises(
        BadData,
        match=r"array 'x', sample 1: 1 of 2 values are NaN or infinite; expected finite numbers",
    ):
        list(open_samples(path, {"data": (1, 2)}))


def test_different_counts_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path, a=np.zeros((2, 1)), b=np.zeros((3, 1)))
    with pytest.raises(
        BadData,
        match="expected as many samples for every input, found 2 for 'a', 3 for 'b'",
    ):
        open_samples(path, {"a": (1, 1), "b": (1, 1)})


def test_an_input_without_a_batch_is_told_how_it_is_given_for_each_sample(
    tmp_path: Path,
) -> None:
    """The places at which an operator network is asked: either array may be the one that all samples share."""
    path = save(tmp_path, u=np.zeros((32, 20)), y=np.zeros((50, 1)))
    with pytest.raises(BadData) as caught:
        open_samples(path, {"u": (1, 20), "y": (1, 1)})
    assert str(caught.value).endswith(
        "found 32 for 'u', 50 for 'y'"
        "; if 'u' is the same for every sample, repeat it for each, as [50,32,20]"
        "; if 'y' is the same for every sample, repeat it for each, as [32,50,1]"
    )
    given = np.repeat(np.zeros((1, 50, 1)), 32, axis=0)
    path = save(tmp_path, u=np.zeros((32, 20)), y=given)
    assert len(open_samples(path, {"u": (1, 20), "y": (50, 1)})) == 32


def test_of_three_inputs_the_one_that_is_alone_may_be_the_same_for_all(
    tmp_path: Path,
) -> None:
    path = save(
        tmp_path, a=np.zeros((4, 1)), b=np.zeros((4, 1)), c=np.zeros((9, 2))
    )
    with pytest.raises(BadData) as caught:
        open_samples(path, {"a": (1, 1), "b": (1, 1), "c": (1, 2)})
    assert str(caught.value).endswith(
        "4 for 'b', 9 for 'c'; if 'c' is the same for every sample, repeat it for each, as [4,9,2]"
    )


def test_labels_asked_for_by_name_must_exist(tmp_path: Path) -> None:
    path = save(tmp_path, x=np.zeros((1, 1)))
    with pytest.raises(
        BadData, match="has no array 'classes' or 'y' for the labels; it has x"
    ):
        open_samples(path, {"data": (1, 1)}, labels="classes")


def test_what_does_not_exist_or_is_of_another_kind_is_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        BadData,
        match=r"gone\.npz: No such file or directory; expected an \.npz, a \.npy or a folder of images",
    ):
        open_samples(tmp_path / "gone.npz", {"data": (1, 1)})
    (tmp_path / "a.txt").write_text("1")
    with pytest.raises(BadData, match=r"a\.txt: expected an \.npz"):
        open_samples(tmp_path / "a.txt", {"data": (1, 1)})
    np.save(tmp_path / "a.npy", np.zeros((1, 1)))
    with pytest.raises(
        BadData,
        match=r"one array for a model of 2 inputs \(a, b\); give an \.npz",
    ):
        open_samples(tmp_path / "a.npy", {"a": (1, 1), "b": (1, 1)})


def test_synthetic_samples_of_an_interval_are_whole_and_reach_its_ends() -> (
    None
):
    (sample,) = synthetic_samples(
        {"a": (1, 300), "b": (1, 300)}, 1, intervals={"a": (-2, 3)}
    )
    assert sorted(set(sample["a"].ravel().tolist())) == [-2, -1, 0, 1, 2, 3]
    assert sample["a"].dtype == np.float32
    assert not np.array_equal(sample["b"], np.floor(sample["b"]))


def test_synthetic_samples_are_the_same_every_time() -> None:
    first = [
        sample["a"] for sample in synthetic_samples({"a": (1, 3)}, 2, seed=7)
    ]
    again = [
        sample["a"] for sample in synthetic_samples({"a": (1, 3)}, 2, seed=7)
    ]
    assert np.array_equal(first, again)
    assert not np.array_equal(first[0], first[1])
    assert first[0].dtype == np.float32
    assert not np.array_equal(
        first[0], next(iter(synthetic_samples({"a": (1, 3)}, 1, seed=8)))["a"]
    )


def test_a_sample_is_called_by_its_place_in_the_file(tmp_path: Path) -> None:
    path = save(tmp_path, x=np.zeros((9, 4), np.float32))
    samples = open_samples(path, {"data": (1, 4)}, limit=3)
    assert [samples.name_of(index) for index in range(3)] == [
        *("sample 0", "sample 3", "sample 6")
    ]
