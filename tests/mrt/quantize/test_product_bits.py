"""Products read fewer bits than other values have: by default in models with layer normalizations."""

from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from click.testing import CliRunner, Result

import cvm
from cvm.program import Program
from mrt.cli import cli
from mrt.quantize import LayerBits, QuantizeOptions
from mrt.quantize.transformer_bits import with_transformer_bits
from tests.support.float_models import FloatModel, f32

ROWS, CHANNELS, HIDDEN = 12, 16, 32
OUTLIER = (
    3  # a channel of the residual stream that is far greater than the others
)
SAMPLES = 60


def block() -> FloatModel:
    """A feed-forward block of a transformer: normalize, multiply, GELU, multiply, add."""
    rng = np.random.default_rng(4)
    model = FloatModel(x=(ROWS, CHANNELS))
    scale = rng.uniform(0.5, 1.5, CHANNELS)
    scale[OUTLIER] = 60.0
    shift = rng.normal(size=CHANNELS)
    normal = model.add(
        "LayerNormalization", "x", f32(scale), f32(shift), axis=-1, name="norm"
    )
    up = rng.normal(size=(HIDDEN, CHANNELS)) / 4
    up[:, OUTLIER] /= 60
    hidden = model.gemm(normal, up, rng.normal(size=HIDDEN))
    active = model.add("Gelu", hidden, name="active")
    down = rng.normal(size=(CHANNELS, HIDDEN)) / 6
    back = model.gemm(active, down, rng.normal(size=CHANNELS))
    model.add("Add", normal, back, name="out")
    return model


def samples(seed: int, count: int) -> np.ndarray:
    return f32(np.random.default_rng(seed).normal(size=(count, ROWS, CHANNELS)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("block")
    proto = block().proto("out")
    proto.opset_import[0].version = 20  # the first with Gelu
    (place / "m.onnx").write_bytes(proto.SerializeToString())
    np.savez(place / "cal.npz", x=samples(1, SAMPLES))
    np.savez(place / "test.npz", x=samples(2, 20))
    return place


def mrt(*words: object) -> Result:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


def convert(folder: Path, name: str, *words: object) -> tuple[Program, str]:
    result = mrt(
        *("convert", folder / "m.onnx", "--data", folder / "cal.npz"),
        *(*words, "-o", folder / name),
    )
    return cvm.load(folder / name).program, result.output


def float_outputs(x: np.ndarray) -> np.ndarray:
    """The block's outputs by another route, numpy in float64."""
    arrays = block().proto("out").graph.initializer
    from onnx import numpy_helper

    scale, shift, up, up_bias, down, down_bias = (
        numpy_helper.to_array(item).astype(np.float64) for item in arrays
    )
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    normal = centred / deviation * scale + shift
    hidden = normal @ up.T + up_bias
    erf = np.vectorize(__import__("math").erf)
    active = hidden * (1 + erf(hidden / np.sqrt(2))) / 2
    return normal + active @ down.T + down_bias


def noise_of_quiet_channels(folder: Path, name: str) -> float:
    """The error's variance over the outputs' variance, without the outlier, whose own size hides it."""
    program, x = cvm.load(folder / name), samples(2, 20)
    (answers,) = program.dequantize(program.run(program.quantize(x))).values()
    wanted = np.stack([float_outputs(sample) for sample in x])
    quiet = np.arange(CHANNELS) != OUTLIER
    error = np.asarray(answers).reshape(wanted.shape) - wanted
    return float(error[..., quiet].var() / wanted[..., quiet].var())


def test_a_model_with_layer_normalizations_has_them_unless_told_otherwise():
    model = ir.from_proto(block().proto("out"))
    found = with_transformer_bits(model, QuantizeOptions())
    assert (found.activation_bits, found.product_bits) == (16, 8)
    six = with_transformer_bits(model, QuantizeOptions(6, 6))
    assert (six.activation_bits, six.product_bits) == (16, 6)
    for chosen in (
        QuantizeOptions(product_bits=8),
        QuantizeOptions(stream_bits=16),
        QuantizeOptions(activation_bits=16),
    ):
        assert with_transformer_bits(model, chosen) is chosen
    other = FloatModel(x=(1, 4))
    other.add("Relu", "x", name="out")
    plain = QuantizeOptions()
    assert with_transformer_bits(ir.from_proto(other.proto("out")), plain) is (
        plain
    )


def test_a_layer_with_bits_of_its_own_keeps_them():
    options = QuantizeOptions(
        activation_bits=16,
        product_bits=8,
        layers={
            "a": LayerBits(activation_bits=16),
            "b": LayerBits(weight_bits=4),
        },
    )
    assert [options.product_bits_of(name) for name in "abc"] == [16, 8, 8]
    assert QuantizeOptions(4, 4, product_bits=8).product_bits_of("a") == 4
    assert QuantizeOptions(activation_bits=6).product_bits_of("a") == 6


def test_products_read_8_bits_and_sums_16(folder):
    program, output = convert(folder, "default.cvm")
    assert "products read 8 bits, other values have 16" in output
    types = cvm.proof.validate.validate(program).types
    dense = [item for item in program.instructions if item.name == "dense"]
    assert [types[item.operands[0]].dtype for item in dense] == ["i8", "i8"]
    held = {
        types[number].dtype
        for number, item in program.metadata.values.items()
        if item.source == "norm"
    }
    assert held == {"i8", "i16"}


def test_channels_have_scales_and_centres_that_the_weights_absorb(folder):
    program, _ = convert(folder, "default.cvm")
    of_norm, of_active = (
        [
            item
            for item in program.metadata.values.values()
            if item.source == source and len(item.channels) > 1
        ]
        for source in ("norm", "active")
    )
    factors = np.array(of_norm[0].channels)
    assert factors.argmax() == OUTLIER
    assert factors.max() > 4 * np.median(factors)
    # GELU's values lie around 0 on one side only, far above on the other.
    assert len(of_active[0].centres) == HIDDEN
    assert np.median(of_active[0].centres) > 0


def test_the_block_is_nearly_as_exact_as_with_16_bits_and_not_with_8(folder):
    convert(folder, "default.cvm")
    convert(folder, "eight.cvm", "--product-bits", 8)
    convert(folder, "plain.cvm", "--refine", "none")
    convert(folder, "sixteen.cvm", "--activation-bits", 16)
    noise = {
        name: noise_of_quiet_channels(folder, f"{name}.cvm")
        for name in ("default", "eight", "plain", "sixteen")
    }
    assert noise["default"] < 1.5 * noise["sixteen"]
    assert noise["default"] < noise["eight"] / 30
    assert noise["default"] < noise["plain"] / 10


def test_the_table_alone_gives_the_same_program(folder):
    mrt(
        *("calibrate", folder / "m.onnx", "--data", folder / "cal.npz"),
        *("-o", folder / "t.json"),
    )
    convert(folder, "default.cvm")
    mrt(
        *("convert", folder / "m.onnx", "--table", folder / "t.json"),
        *("-o", folder / "by_table.cvm"),
    )
    one, other = (
        (folder / name).read_bytes() for name in ("default.cvm", "by_table.cvm")
    )
    assert one == other


@pytest.mark.parametrize(
    "move",
    [
        None,
        ("Transpose", {"perm": [1, 0]}),
        ("Gather", {"axis": 1}, np.array([1, 0])),
        ("Pad", {}, np.array([0, 1, 0, 1]), f32(0)),
    ],
    ids=["output", "transpose", "gather", "pad"],
)
def test_rows_that_have_another_reader_keep_one_scale_for_it(tmp_path, move):
    """The scales of channels are for the form that products read alone."""
    model = FloatModel(x=(ROWS, CHANNELS))
    generator = np.random.default_rng(6)
    shift = np.zeros(CHANNELS)
    normal = model.add(
        "LayerNormalization", "x", f32(shift + 1), f32(shift), axis=-1
    )
    sizes = np.geomspace(1, 100, CHANNELS)
    weights = generator.normal(size=(CHANNELS, CHANNELS)) * sizes[:, None]
    rows = model.gemm(normal, weights, shift)
    heads = generator.normal(size=(3, CHANNELS)) / sizes
    logits = model.gemm(rows, heads, np.zeros(3))
    other = rows
    if move is not None:
        operator, attributes, *constants = move
        other = model.add(operator, rows, *constants, **attributes)
    proto = model.proto(logits, other)
    proto.opset_import[0].version = 20
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    x = samples(7, 40)
    np.savez(tmp_path / "cal.npz", x=x)
    mrt(
        *("convert", tmp_path / "m.onnx", "--data", tmp_path / "cal.npz"),
        *("-o", tmp_path / "m.cvm"),
    )
    program = cvm.load(tmp_path / "m.cvm")
    answers = program.dequantize(program.run(program.quantize(x[:1])))
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    expected = session.run([logits, other], {"x": x[0]})
    for name, wanted in zip((logits, other), expected, strict=True):
        error = np.asarray(answers[name]).reshape(wanted.shape) - wanted
        assert np.square(error).sum() < np.square(wanted).sum() * 1e-3
