"""FloatSession: what onnxruntime says when it cannot run a model."""

import numpy as np
import pytest

from mrt.calibrate.session import FloatSession
from mrt.errors import BadModel
from tests.graphs import graph_of, node


def test_a_model_that_cannot_be_run_is_refused_without_a_word_of_the_library_on_stderr(capfd):
    conv = node("Conv", "x w", "y", auto_pad="SAME_UPPER", dilations=[2, 2])
    session = FloatSession(graph_of([conv], {"x": (1, 1, 8, 8)}, {"w": np.ones((1, 1, 3, 3), np.float32)}))
    with pytest.raises(BadModel, match=r"the float model cannot be run: .*Dilation not supported"):
        session.run({"x": np.zeros((1, 1, 8, 8), np.float32)})
    assert capfd.readouterr() == ("", "")
