"""Operands of 16 bits: lines stand for a table where they are close to it at every integer, and nowhere else."""

import math

import numpy as np
import pytest

from mrt.quantize import QuantizeOptions
from mrt.quantize.exponentials import TOP, _factor, _points
from mrt.quantize.tensor import Format
from mrt.quantize.wide_tables import Lines, close_lines
from tests.support.float_models import FloatModel, convert, f32, run_real

SIXTEEN = QuantizeOptions(8, 16)
ALL = np.arange(-32768, 32768)


def i16(most: int = 32767) -> Format:
    return Format("i16", 1 / most, 0, -32768, 32767)


def tanh(reach: float, first: int = -32768, last: int = 32767):
    """Return what gives the integers of a format of tanh, where x reaches so far to both sides."""
    reals = np.tanh(np.arange(first, last + 1) * reach / 32768)

    def sample(target: Format) -> np.ndarray:
        steps = np.floor(reals / target.scale + 0.5) + target.zero_point
        return steps.clip(target.least, target.most).astype(np.int64)

    return sample


def kept(entries: np.ndarray):
    """Return what gives these integers of `i16`, in any format."""

    def sample(target: Format) -> np.ndarray:
        steps = np.floor(entries * (i16().scale / target.scale) + 0.5)
        return steps.clip(target.least, target.most).astype(np.int64)

    return sample


def lines_of(target: Format, sample, first: int = -32768) -> Lines | None:
    return close_lines(target, sample(target), first, sample, "real")


def test_the_points_give_what_the_line_has_in_whole_numbers():
    """Points of 10 and 30 in eighths of a step: 10 / 8 = 1.25 up to 30 / 8 = 3.75, and 2.5 in the middle."""
    points = np.zeros(513, np.int64)
    points[256:258] = 10, 30
    lines = Lines(points, 0.125, "i16")
    assert lines.at(np.array([0, 64, 127, 128])).tolist() == [1, 3, 4, 4]
    shifted = Lines(points * 400, 0.125, "i8", -128)  # 500 .. 1500 saturate
    assert shifted.at(np.array([-32768, 0, 64])).tolist() == [-128, 127, 127]


@pytest.mark.parametrize("reach", [1, 4, 8, 16])
def test_lines_stay_as_near_as_they_claim(reach):
    lines = lines_of(i16(), tanh(reach))
    reals = np.tanh(ALL * reach / 32768)
    one_step = reach * (1 - reals**2)
    error = np.abs(lines.at(ALL) - 32767 * reals)
    assert (error <= 1.6 + 1.01 * one_step).all()


@pytest.mark.parametrize("zero_point", [0, -128])
def test_a_result_of_8_bits_has_points_of_16(zero_point):
    """They are so fine that the result is the nearest integer but beside ties."""
    target = Format("i8", 1 / 120, zero_point, -128, 127)
    first = 0 if zero_point else -32768
    lines = lines_of(target, tanh(4, first), first)
    places = np.arange(first, 32768)
    exact = 120 * np.tanh(places * 4 / 32768) + zero_point
    assert np.abs(lines.points).max() > 30000
    assert np.abs(lines.at(places) - exact).max() < 0.52


@pytest.mark.parametrize("last", [-5000, 1, 1664, 1666, 1790, 1791])
def test_the_last_line_ends_where_x_does(last):
    """The greatest entry fills 16 bits, so that a point beyond needs more steps than the result has."""
    sample = tanh(8, -32768, last)
    scale = (
        float(np.abs(np.tanh(np.array([-32768, last]) / 4096)).max()) / 32767
    )
    lines = lines_of(Format("i16", scale, 0, -32768, 32767), sample)
    places = np.arange(-32768, last + 1)
    exact = np.tanh(places / 4096) / scale
    assert np.abs(lines.at(places) - exact).max() < 4


def test_scales_of_powers_of_two_stay_so():
    sample = tanh(8, -32768, 1790)
    target = Format("i16", 2.0**-15, 0, -32768, 32767)
    lines = close_lines(target, sample(target), -32768, sample, "shift")
    assert lines.factors[0].tolist() == [2**30]


def test_what_bends_too_sharply_has_no_lines():
    bend = np.where(ALL < 37, ALL // 8, ALL - 32)
    assert lines_of(i16(), kept(bend.clip(-32768, 32767))) is None
    noise = np.random.default_rng(1).integers(-9, 9, 65536)
    noise[100:-100] += 30 * (-1) ** np.arange(65336)
    assert lines_of(i16(), kept(noise // 30 * 400)) is None


@pytest.mark.parametrize("reach", [40, 64, 200, 5000])
def test_between_flat_ends_points_stand_closer(reach):
    """tanh is within half a step of 1 from 5.9 on, at most 7 bits closer."""
    lines = lines_of(i16(), tanh(reach))
    width = 2 * 5.9 / reach * 32768
    bits = min(7, int(np.log2(65535 / width)))
    assert lines.spread.bits == bits
    assert lines.spread.high - lines.spread.low == pytest.approx(width, abs=99)
    reals = np.tanh(ALL * reach / 32768)
    one_step = reach * (1 - reals**2)
    error = np.abs(lines.at(ALL) - 32767 * reals)
    assert (error <= 1.6 + 1.01 * one_step + 0.6 * (one_step > 8)).all()


def test_steps_are_exact_between_flat_ends():
    sample = kept(ALL.clip(5, 11) - 8)
    lines = lines_of(i16(), sample)
    assert np.array_equal(lines.at(ALL), sample(i16()))
    one_jump = kept(np.where(ALL < 5, -9, 9))  # of 17 bits, in points
    assert lines_of(i16(), one_jump) is None


def test_a_bend_where_x_never_is_does_not_matter():
    entries = np.where(ALL < 5, -20000, ALL // 2)
    assert lines_of(i16(), kept(entries)) is None
    behind = kept(entries[32768 + 128 :])
    assert lines_of(i16(), behind, 128) is not None


def test_a_value_that_is_known_has_lines():
    assert lines_of(i16(), kept(np.array([7])), 300).at(np.array([300])) == [7]
    assert lines_of(i16(), kept(np.array([0, 0])), -9).at(np.array([-9])) == [0]


def test_one_entry_that_is_off_is_enough():
    points = np.arange(-256, 257) * 128
    lines = Lines(points, 1.0, "i16")
    entries = np.zeros(300, np.int64)
    flat = Lines(points * 0, 1.0, "i16")
    assert lines.are_close(ALL, ALL)
    entries[150:] = 1  # a step of 1 where lines have none
    assert flat.are_close(ALL[:300], entries)
    entries[299] = 4  # 1 and a change of 3 next to it
    assert flat.are_close(ALL[:300], entries)
    entries[298:] = 4  # the last has no change beside it
    assert not flat.are_close(ALL[:300], entries)


def test_jumps_of_more_than_16_bits_are_not_lines():
    points = np.zeros(513, np.int64)
    points[[4, 5]] = -16384, 16384
    assert not Lines(points, 1.0, "i16").allowed
    points[5] = 16383
    assert Lines(points, 1.0, "i16").allowed


@pytest.mark.parametrize(
    "scale", [1e-5, 1.7e-4, 3.3e-4, 3.5e-4, 0.001, 0.02, 0.5, 3.0, 900.0]
)
def test_exponentials_by_lines(scale):
    """No further than what one step of the logits changes, and exact at 0."""
    factor = _factor(scale)
    lines = Lines(_points(scale, factor), 1.0, "i32")
    least = -((TOP + 32768) // factor)
    differences = np.arange(max(least, -32768), 1)
    exact = 32767 * np.exp(scale * differences)
    found = lines.at(TOP + factor * differences)
    assert found[-1] == 32767
    assert (np.abs(found - exact) <= 1.6 + exact * min(scale, 1)).all()
    if least > -32768:
        assert found[0] == 0  # all that lies lower has vanished


def names(program) -> list[str]:
    return [item.name for item in program.instructions]


def wide_tables(program) -> list[np.ndarray]:
    arrays = program.constants
    return [array for array in arrays if array.shape == (65536,)]


def test_a_program_of_16_bits_has_lines_that_are_as_good_as_a_table():
    model = FloatModel(x=(1, 500))
    program = convert(model, model.add("Tanh", "x", name="y"), options=SIXTEEN)
    assert names(program)[-2:] == ["interpolate", "rescale"]
    assert not wide_tables(program)
    x = np.linspace(-2, 2, 500, dtype=np.float32)[None]
    found = run_real(program, {"x": x})["y"]
    assert np.abs(found - np.tanh(x.astype(np.float64))).max() < 2e-4


def test_a_program_spreads_what_is_flat_at_its_ends():
    model = FloatModel(x=(1, 500))
    great = model.add("Mul", "x", f32(40.0))
    program = convert(
        model, model.add("Sigmoid", great, name="y"), options=SIXTEEN
    )
    spread = ["cast", "clamp", "shift_left", "add", "cast"]
    assert names(program)[-7:] == [*spread, "interpolate", "rescale"]
    assert not wide_tables(program)
    x = np.linspace(-1.5, 1.5, 500, dtype=np.float32)[None]
    found = run_real(program, {"x": x})["y"]
    exact = 1 / (1 + np.exp(-40 * x.astype(np.float64)))
    assert np.abs(found - exact).max() < 2e-3


def test_divisors_and_integers_keep_their_table():
    model = FloatModel(x=(1, 8), z=(1, 8))
    powers = model.add("Exp", "x")
    ratio = model.add("Div", "z", powers, name="y")
    program = convert(model, ratio, options=SIXTEEN)
    assert "interpolate" not in names(program)
    model = FloatModel(x=(1, 8))
    floor = model.add("Floor", model.add("Mul", "x", f32(3.0)), name="y")
    program = convert(model, floor, options=SIXTEEN)
    assert "interpolate" not in names(program)


def test_rows_of_many_logits_keep_tables_in_16_bits():
    """Small exponentials are summed in finer steps than large ones, so neither table has a bend that lines can follow."""
    model = FloatModel(x=(1, 3000))
    program = convert(
        model, model.add("Softmax", "x", axis=-1, name="y"), options=SIXTEEN
    )
    found = wide_tables(program)
    assert [array.dtype for array in found] == [np.int16, np.int16]
    assert math.prod(found[0].shape) == 65536
    assert names(program).count("interpolate") == 1
