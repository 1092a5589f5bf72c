"""What a memo keeps of curves, so that the programs of a search need not compute them again."""

import numpy as np

from mrt.quantize.curves.curve_memo import MOST_SAMPLED, CurveMemo
from mrt.quantize.curves.sampled_curve import SampledCurve
from mrt.quantize.tensor import Format
from tests.support.curves import CURVES

I8 = Format("i8", 1 / 128, 0, -128, 127)


class CountedSamples:
    """Results of one curve at many scales, and how many times it was sampled."""

    def __init__(self) -> None:
        self.memo, self.times = CurveMemo(), 0

    def at(self, scale: float):
        def sample() -> SampledCurve:
            self.times += 1
            integers = np.arange(-128, 128)
            return SampledCurve(CURVES["Sigmoid"], scale, 0, integers)

        results = self.memo.of(scale, sample)
        return results.interval(), results.entries(I8).tolist()


def test_more_curves_than_are_kept_are_sampled_once_each():
    scales = [2.0**-power for power in range(MOST_SAMPLED + 3)]
    curves = CountedSamples()
    first = [curves.at(scale) for scale in scales]
    assert curves.times == len(scales)
    assert [curves.at(scale) for scale in scales] == first
    assert curves.times == len(scales)


def test_each_key_has_results_of_its_own():
    curves = CountedSamples()
    (low, high), entries = curves.at(1.0)
    assert low < 1e-50 and high == 1.0
    assert entries[0] == 0 and entries[128] == 64 and entries[255] == 127
    assert curves.at(2.0**-9)[1][0] == round(128 / (1 + np.exp(0.25)))
