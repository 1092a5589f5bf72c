"""The scores that probabilities are made of, found behind what brings these into another form."""

import onnx_ir as ir
import pytest
from onnx import parser

from mrt.graph.scores_of_probabilities import scores_of_probabilities

HEAD = '<ir_version: 9, opset_import: ["" : 17]> main (float[2, 3] x, float[3, 3] w) => (float y) <float one = {1.0}> '


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("s = MatMul (x, w) y = Softmax <axis = 1> (s)", ("s", 1)),
        ("s = MatMul (x, w) y = Softmax (s)", ("s", -1)),
        ("s = MatMul (x, w) y = Sigmoid (s)", ("s", None)),
        (
            "s = MatMul (x, w) p = LogSoftmax <axis = 1> (s) y = Exp (p)",
            ("s", 1),
        ),
        # a second class, as scikit-learn's binary classifiers have
        (
            "s = MatMul (x, w) p = Sigmoid (s) q = Sub (one, p) "
            "y = Concat <axis = 1> (q, p)",
            ("s", None),
        ),
        # less the logarithm of their sum, read beside it
        (
            "s = Add (x, w) l = LogSoftmax <axis = 1> (s) m = ReduceMax (s) n = ReduceMax (l) d = Sub (m, n) "
            "e = Sub (s, d) y = Exp (e)",
            ("s", 1),
        ),
        ("h = Sigmoid (x) s = MatMul (h, w) y = Softmax (s)", ("s", -1)),
        ("s = MatMul (x, w) y = Relu (s)", None),
        ("s = Sigmoid (x) y = Relu (s)", None),
        ("p = Sigmoid (x) q = Sigmoid (w) y = Mul (p, q)", None),
        ("p = Sigmoid (x) q = Relu (w) y = Mul (p, q)", None),
        ("y = Identity (x)", None),
    ],
)
def test_scores_are_what_the_last_squashing_reads(body, expected):
    text = f"{HEAD}{{ {body} }}"
    model = ir.from_proto(parser.parse_model(text))
    found = scores_of_probabilities(model.graph.outputs[0])
    assert (found and (found.value.name, found.free_axis)) == expected
