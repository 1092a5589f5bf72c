"""Every operator form that the ONNX front end accepts reaches canonical form and keeps its meaning."""

import onnx
import onnx_ir as ir
import pytest

from mrt.frontend.onnx import load_onnx
from mrt.rewrite import rewrite
from tests.support.graphs import assert_same, run
from tests.support.operator_cases import CASES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rewriting_reaches_canonical_form_and_keeps_the_meaning(case, tmp_path):
    path = tmp_path / "case.onnx"
    proto = case.model()
    onnx.save(proto, path)
    model, _ = load_onnx(path)
    rewrite(model)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    assert_same(run(proto, case.feeds()), run(model, case.feeds()))
