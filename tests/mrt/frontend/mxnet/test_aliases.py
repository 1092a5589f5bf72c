"""The names that mx.sym.sparse, mx.npx and mx.np give to operators, as MXNet 1.9.1 lists them."""

import numpy as np
import pytest

from mrt.frontend.mxnet import OPERATORS
from mrt.frontend.mxnet.operators.aliases import OTHER_NAMES, known_name
from tests.support.mxnet_rows import check_refusal, check_row, names, row

X = np.array([[-1.5, 2, 0.5]], np.float32)

ROWS = [
    row("_sparse_abs", X, [[1.5, 2, 0.5]]),
    row("_sparse_elemwise_sub", [X, X], [[0, 0, 0]]),
    row("_npx_activation", X, [[0, 2, 0.5]], act_type="relu"),
    row("_npx_topk", X, [[1, 2]], k="2"),
    row("_npi_clip", X, [[-1, 1, 0.5]], a_min="-1", a_max="1"),
    row("_npi_maximum", [X, X[:, :1]], [[-1.5, 2, 0.5]]),
    row("_np_repeat", X, [[-1.5, -1.5, 2, 2, 0.5, 0.5]], repeats="2", axis="1"),
]


@pytest.mark.parametrize("case", ROWS, ids=names(ROWS))
def test_another_name_is_read_as_the_operator(case, tmp_path):
    check_row(tmp_path, case)


@pytest.mark.parametrize("alias", OTHER_NAMES)
def test_another_name_leads_to_a_declared_operator(alias):
    assert OTHER_NAMES[alias] in OPERATORS
    assert alias not in OPERATORS


def test_a_name_that_merely_looks_alike_is_unknown(tmp_path):
    assert known_name("_sparse_retain") == "_sparse_retain"
    check_refusal(tmp_path, row("_sparse_retain", X, X), "unsupported operator")
