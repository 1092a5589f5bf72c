"""Real models: which are accepted, and that the rewritten graph computes what the file computes."""

import onnx
import onnx_ir as ir
import pytest

from mrt.frontend import load
from mrt.rewrite import rewrite
from tests.support.graphs import assert_same, run, seeded, shapes_of
from tests.support.shared_data import SHARED, needs_shared

# Dozens of layers of float32, summed in another order: measured at most 3e-6 of the largest output,
# and 1.01e-4 where the first convolution takes a Focus in (yolox_nano; 6e-6 in the mean of squares).
MODEL_ROUNDING = 2e-4

QUICK = [
    "cifar10_resnet20_fp32", "espcn_subpixel_float", "ezkl_lenet_5", "ezkl_mnist_gan", "ezkl_multihead_attention", "ezkl_xgboost",
    "mlperftiny_dscnn_kws_fp32", "mlperftiny_resnet8_cifar10_fp32", "mnist_cntk", "vnncomp_ibp_3_3_8",
]  # fmt: skip
LARGE = [
    "mobilenetv1_0.25_keras_fp32", "mobilenetv2_torchvision_fp32", "squeezenet1.1_fp32", "style_candy",
    "ultraface_rfb320", "yolox_nano",
]  # fmt: skip
# Take integers: tests/mrt/quantize/test_whole_models.py and test_unrolled_and_volumes.py.
ELSEWHERE = ["magika_v3_3", "tract_byte_sb_bidi_lstm"]

pytestmark = needs_shared


@pytest.mark.parametrize(
    "name",
    [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)],
)
def test_rewritten_equals_original(name):
    path = SHARED / "onnx" / f"{name}.onnx"
    model = load(path).model
    rewrite(model)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    feeds = seeded(shapes_of(model))
    assert_same(run(onnx.load(path), feeds), run(model, feeds), MODEL_ROUNDING)


def test_no_model_is_left_out():
    names = {path.stem for path in (SHARED / "onnx").glob("*.onnx")}
    assert names == {*QUICK, *LARGE, *ELSEWHERE}


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("trained/lenet_digits28", (1, 1, 28, 28)),
        ("trained/resnet_digits8", (1, 1, 8, 8)),
        ("trained/mxnet_mnist", (1, 1, 28, 28)),
        ("trained/mxnet_fashion-mnist", (1, 1, 28, 28)),
        ("untrained/cifar_resnet20_v1", (1, 3, 32, 32)),
        pytest.param(
            "untrained/mobilenet0.25", (1, 3, 224, 224), marks=pytest.mark.slow
        ),
        pytest.param(
            "untrained/squeezenet1.1", (1, 3, 224, 224), marks=pytest.mark.slow
        ),
    ],
)
def test_rewritten_mxnet_model_equals_the_imported_one(path, shape):
    model = load(
        SHARED / "mxnet" / f"{path}-symbol.json", shapes={"data": shape}
    ).model
    feeds = seeded(shapes_of(model))
    imported = run(model, feeds)
    rewrite(model)
    assert_same(imported, run(model, feeds), MODEL_ROUNDING)
