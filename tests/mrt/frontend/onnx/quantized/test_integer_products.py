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
MOVED = PRODUCT.replace(
    "  c = MatMulInteger (q,",
    "  p = Constant <value_ints = [1, 6]> ()\n  g = Reshape (q, p)\n  c = MatMulInteger (g,",
)
# quantize_dynamic leaves the product of an embedding so
OF_TABLE = """<ir_version: 8, opset_import: ["" : 13]>
main (int64[1, 5] ids) => (float[5, 1, 4] y)
<uint8[7, 6] table, uint8 z = {131}, float t = {0.002}> {
  e = Gather (table, ids)
  q = Transpose <perm = [1, 0, 2]> (e)
  c = MatMulInteger (q, w, z, ZERO)
  f = Cast <to = 1> (c)
  y = Mul (f, t)
}"""
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
        pytest.param(MOVED, (6, 4), (1, 6), 1, id="moved integers"),
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


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("zero", ["z, ZERO", '"", ZERO', "z"])
def test_integers_of_a_constant_table_have_onnxruntimes_products(
    zero, columns, tmp_path
):
    text = OF_TABLE.replace("z, ZERO", zero)
    path = saved(text, tmp_path, (6, 4), columns=columns)
    proto = onnx.load(path)
    table = RNG.integers(0, 256, (7, 6), np.uint8)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    onnx.save(proto, path)
    model, _ = load_onnx(path)
    feeds = {"ids": np.array([[3, 0, 6, 1, 3]])}
    session = ort.InferenceSession(str(path))
    found = run(model, feeds)["y"]
    assert (found == session.run(None, feeds)[0]).all()


def test_a_computed_zero_point_of_a_table_is_refused(tmp_path):
    text = OF_TABLE.replace(
        "  c =", "  n = Size (q)\n  o = Cast <to = 2> (n)\n  c ="
    )
    text = text.replace("z, ZERO", "o").replace("table,", "w,")
    with pytest.raises(Unsupported, match="zero point of its integers is comp"):
        load_onnx(saved(text, tmp_path, (7, 7)))


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
