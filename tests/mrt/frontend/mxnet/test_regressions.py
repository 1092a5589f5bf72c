"""Cases on which the front end once disagreed with mxnet, with the answer that mxnet 1.9.1 gave."""

import pytest

from tests.mxnet_judge import convert, regressions
from tests.mxnet_judge.compare import judge

ROWS = regressions.load()


@pytest.mark.parametrize(
    ("case", "answer"), ROWS, ids=[case.id for case, _ in ROWS]
)
def test_what_differed_from_mxnet_once_agrees(case, answer, tmp_path):
    verdict = judge(case, answer, convert.run(case, tmp_path))
    assert not verdict.wrong, f"{verdict.outcome}: {verdict.detail}"
