"""What a good verdict on few samples leaves open is noted."""

import pytest

from mrt.evaluate.verdict import DOUBTFUL, GOOD, Verdict
from mrt.quality import Quality


def quality(
    calibrated_on: int, word: str = GOOD, snr_db: float | None = 30.0
) -> Quality:
    verdict = Verdict(word, 8, True, None, snr_db, None)
    return Quality(verdict=verdict, calibrated_on=calibrated_on)


def test_few_samples_behind_good_figures_are_noted():
    (note,) = quality(31).notes()
    assert note.startswith("31 samples are few to calibrate on: ")
    (note,) = quality(1).notes()
    assert note.startswith("one sample is little to calibrate on: ")


@pytest.mark.parametrize(
    "other",
    [quality(32), quality(8, DOUBTFUL), quality(8, snr_db=None), Quality()],
    ids=["enough", "advised already", "nothing differs", "not measured"],
)
def test_nothing_else_is_noted(other):
    assert other.notes() == []
