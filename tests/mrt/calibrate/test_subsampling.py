"""Thinning: which rows of a large image are looked at."""

import numpy as np
import onnx_ir as ir

from mrt.calibrate.collect import calibrate
from mrt.calibrate.samples import synthetic_samples
from mrt.calibrate.subsampling import ENOUGH_OF_ONE_SAMPLE, Subsampling
from mrt.table.table import CalibrationOptions
from tests.support.float_models import FloatModel


def test_of_a_large_image_rows_at_equal_distances_are_left_and_others_of_the_next_sample() -> (
    None
):
    image = np.arange(2 * 10 * 5).reshape(1, 2, 10, 5)
    left = [
        Subsampling(40).subsample(image, sample) for sample in range(4)
    ]  # every third row: 30 or 40 numbers
    assert left[0][0, :, :, 0].tolist() == [[0, 15, 30, 45], [50, 65, 80, 95]]
    assert left[1][0, :, :, 0].tolist() == [[5, 20, 35], [55, 70, 85]]
    assert left[2][0, 0, :, 1].tolist() == [11, 26, 41] and np.array_equal(
        left[3], left[0]
    )
    assert all(item.flags.c_contiguous for item in left)


def test_one_row_is_left_in_any_case() -> None:
    image = np.arange(2 * 3 * 5).reshape(1, 2, 3, 5)
    assert [
        Subsampling(1).subsample(image, sample)[0, :, :, 0].tolist()
        for sample in (1, 2)
    ] == [[[5], [20]], [[10], [25]]]


def test_small_images_and_what_is_no_image_stay_whole() -> None:
    for shape in ((1, 2, 3, 4), (1, 24), (2, 3, 4), (20, 50)):
        values = np.zeros(shape)
        assert Subsampling(24).subsample(values, 1) is values


def test_of_what_hardly_matters_an_eighth_is_left() -> None:
    image = np.arange(2 * 16 * 5).reshape(1, 2, 16, 5)
    assert Subsampling(160).subsample(image, 3) is image
    assert Subsampling(160).coarse_subsample(image, 3)[0, :, :, 0].tolist() == [
        [15, 55],
        [95, 135],
    ]


def test_of_what_only_a_clip_reads_an_eighth_is_counted_but_all_of_it_for_the_ends(
    monkeypatch,
) -> None:
    monkeypatch.setattr("mrt.calibrate.subsampling.ENOUGH_OF_ONE_SAMPLE", 256)
    monkeypatch.setattr("mrt.calibrate.subsampling.ENOUGH_OF_ALL_SAMPLES", 0)
    model = FloatModel(x=(1, 1, 16, 16))
    inner = model.add("Neg", "x")
    outer = model.add("Relu", inner)
    graph = ir.from_proto(model.proto(outer))
    samples = synthetic_samples(model.inputs, 32)
    numbers = -np.stack([sample["x"][0, 0] for sample in samples])
    ranges = calibrate(
        graph,
        samples,
        CalibrationOptions("percentile", percentile=99.0),
        model_sha256="",
    ).ranges
    assert (ranges[inner].min, ranges[inner].max) == (
        numbers.min(),
        numbers.max(),
    )
    subsample = np.stack(
        [image[index % 8 :: 8] for index, image in enumerate(numbers)]
    )
    assert (subsample > ranges[inner].hi).sum() == 10  # of 1024, at most 1 %
    assert (numbers > ranges[outer].hi).sum() == 81  # of 8192


def test_the_fewer_samples_the_more_of_each_is_looked_at() -> None:
    assert [Subsampling.of(count).most for count in (1, 64, 1000)] == [
        2**22,
        2**16,
        ENOUGH_OF_ONE_SAMPLE,
    ]


def test_the_ends_of_a_range_are_those_of_every_number_and_the_rest_is_of_few(
    monkeypatch,
) -> None:
    monkeypatch.setattr("mrt.calibrate.subsampling.ENOUGH_OF_ONE_SAMPLE", 16)
    monkeypatch.setattr("mrt.calibrate.subsampling.ENOUGH_OF_ALL_SAMPLES", 0)
    model = FloatModel(x=(1, 1, 16, 16))
    name = model.add("Neg", "x")
    graph = ir.from_proto(model.proto(name))
    samples = synthetic_samples(model.inputs, 32)
    numbers = -np.stack([sample["x"][0, 0] for sample in samples])
    found = calibrate(
        graph,
        samples,
        CalibrationOptions("percentile", percentile=99.0),
        model_sha256="",
    ).ranges[name]
    assert (found.min, found.max) == (numbers.min(), numbers.max())
    subsample = np.stack(
        [image[index % 16] for index, image in enumerate(numbers)]
    )
    assert (subsample > found.hi).sum() == 5  # of 512, at most 1 %
