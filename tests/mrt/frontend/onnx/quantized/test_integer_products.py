"""MatMulInteger and ConvInteger of a QuantizeLinear's integers; onnxruntime runs the same file as the judge."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from cvm.runtime.executable import Executable
from mrt import pipeline
from mrt.config import Config, ModelSettings
from mrt.errors import Unsupported
from mrt.frontend.onnx import load_onnx
from tests.support.graphs import run

RNG = np.random.default_rng(5)
PRODUCT = """<ir_version: 8, opset_import: ["" : 13]>
main (float[1, 6] x) => (float[1, 4] y)
<float s = {0.05}, uint8 z = {131}, float t = {0.002}, float u = {0.25}, int8 v = {-3}> {
  q = QuantizeLinear (x, s, z)
  c = MatMulInteger (q, w, z, ZERO)
  f = Cast <to = 1> (c)
  m = Mul (f, t)
  r = Relu (m)
  e = QuantizeLinear (r, u, v)
  y = DequantizeLinear (e, u, v)
}"""
CONVOLUTION = PRODUCT.replace("[1, 6]", "[1, 3, 5, 5]").replace(
    "[1, 4]", "[1, 4, 5, 5]"
)
CONVOLUTION = CONVOLUTION.replace(
    "MatMulInteger", "ConvInteger <kernel_shape = [3, 3], pads = [1, 1, 1, 1]>"
)
CAST = """  f = Cast <to = 1> (c)
  m = Mul (f, t)"""
# as onnx_quantize ends a Gemm
DEQUANTIZED = """  i = Add (c, a)
  k = Mul (s, d)
  m = DequantizeLinear (i, k)"""
BIASED = PRODUCT.replace("(c)", "(i)").replace(
    "  f =", "  i = Add (a, c)\n  f ="
)
# rows and columns are as many
OF_RANK_3 = PRODUCT.replace("[1, 6]", "[1, 4, 6]").replace(
    "[1, 4] y", "[1, 4, 4] y"
)
OF_CHANNELS = CONVOLUTION.replace(CAST, "  m = DequantizeLinear (c, e4)")


def saved(text, folder, shape, *, zero="b", columns=1):
    """The model with random weights of i8 and one zero point, or one for each output."""
    proto = onnx.parser.parse_model(text.replace("ZERO", zero))
    weights = RNG.integers(-100, 100, shape, np.int8)
    points = np.array([3, -5, 0, 7], np.int8)[:columns].reshape(
        () if columns == 1 else (-1,)
    )
    steps = np.float32([0.002, 0.0011234, 0.0043219, 0.0031567])
    constants = {
        "w": weights,
        "b": points,
        "a": np.int32([700, -1900, 0, 5]),
        "d": np.float32(0.04),
        "d4": steps * 20,
        "e4": steps,
    }
    for name, array in constants.items():
        item = onnx.numpy_helper.from_array(array, name)
        proto.graph.initializer.append(item)
    onnx.save(proto, folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.filterwarnings("ignore::cvm.errors.ClippedInput")
@pytest.mark.parametrize(
    ("text", "shape", "x", "columns"),
    [
        pytest.param(PRODUCT, (6, 4), (1, 6), 1, id="MatMulInteger"),
        pytest.param(PRODUCT, (6, 4), (1, 6), 4, id="zero points of columns"),
        pytest.param(
            CONVOLUTION, (4, 3, 3, 3), (1, 3, 5, 5), 1, id="ConvInteger"
        ),
        pytest.param(BIASED, (6, 4), (1, 6), 1, id="a bias in i32"),
        pytest.param(
            PRODUCT.replace(CAST, DEQUANTIZED),
            (6, 4),
            (1, 6),
            1,
            id="DequantizeLinear",
        ),
        pytest.param(
            PRODUCT.replace(CAST, DEQUANTIZED.replace("d)", "d4)")),
            (6, 4),
            (1, 6),
            4,
            id="DequantizeLinear of columns",
        ),
        pytest.param(
            OF_CHANNELS,
            (4, 3, 3, 3),
            (1, 3, 5, 5),
            1,
            id="DequantizeLinear of channels",
        ),
    ],
)
def test_the_program_has_onnxruntimes_integers(
    text, shape, x, columns, tmp_path
):
    path = saved(text, tmp_path, shape, columns=columns)
    config = Config(model=ModelSettings(path=path))
    result = pipeline.convert(config, table=None, progress=lambda *_: None)
    assert not result.synthetic
    program = Executable.of(result.proven)
    session = ort.InferenceSession(str(path))
    for _ in range(20):
        sample = {"x": (RNG.normal(size=x) * 3).astype(np.float32)}
        found = program.dequantize(program.run(program.quantize(sample)))["y"]
        assert (found == session.run(None, sample)[0]).all()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("f = Cast <to = 1> (c)", "g = Cast <to = 7> (c)\n f = Cast <to = 1> (g)", "read as such"),
        (CAST, "  k = Abs (x)\n  l = ReduceMax <keepdims = 0> (k)\n  m = DequantizeLinear (c, l)", "read as such"),
        (CAST, "  m = DequantizeLinear <axis = 0> (c, e4)", "read as such"),
        (CAST, "  i = Add (c, c)\n  m = DequantizeLinear (i, d)", "read as such"),
        ("(q, w, z,", "(q, w, o,", "a zero point that is not the one"),
        ("(q, w, z,", "(w, q, z,", "integers in a form that is not read"),
    ],
)  # fmt: skip
def test_other_forms_are_refused_by_name(old, new, reason, tmp_path):
    text = PRODUCT.replace(old, new)
    text = text.replace("uint8 z = {131}", "uint8 z = {131}, uint8 o = {7}")
    path = saved(text, tmp_path, (6, 4))
    with pytest.raises(Unsupported, match=rf"\(MatMulInteger\): .*{reason}"):
        load_onnx(path)


def test_scales_of_columns_of_rank_3(tmp_path):
    text = OF_RANK_3.replace(CAST, "  m = DequantizeLinear <axis = 2> (c, e4)")
    path = saved(text, tmp_path, (6, 4))
    model, _ = load_onnx(path)
    feeds = {"x": RNG.normal(size=(1, 4, 6)).astype(np.float32)}
    expected = run(onnx.load(path), feeds)["y"]
    # As reals: half a step of 0.25, and what the rounded inputs add.
    np.testing.assert_allclose(run(model, feeds)["y"], expected, atol=0.8)


@pytest.mark.parametrize("array", ["w", "a"])
def test_scales_of_rows_that_weights_or_a_bias_bring_are_refused(
    array, tmp_path
):
    text = PRODUCT.replace("[1, 6]", "[4, 6]").replace(
        "[1, 4] y", "[2, 4, 4] y"
    )
    text = text.replace(
        CAST, "  i = Add (c, a)\n  m = DequantizeLinear (i, e4)"
    )
    path = saved(text, tmp_path, (2, 6, 4) if array == "w" else (6, 4))
    proto = onnx.load(path)
    if array == "a":
        (bias,) = (it for it in proto.graph.initializer if it.name == "a")
        bias.dims[:] = [4, 1, 1]
    onnx.save(proto, path)
    with pytest.raises(Unsupported, match="one for each channel"):
        load_onnx(path)


def test_scales_of_rows_are_refused(tmp_path):
    text = OF_RANK_3.replace(CAST, "  m = DequantizeLinear (c, e4)")
    with pytest.raises(Unsupported, match="one for each channel"):
        load_onnx(saved(text, tmp_path, (6, 4)))
