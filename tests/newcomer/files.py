"""The files of three newcomers: small models that stand for theirs, data that suit these, and data that do not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import skl2onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper
from PIL import Image
from sklearn.ensemble import RandomForestClassifier

DIGITS = Path(__file__).resolve().parents[2] / "calibration_data" / "digits8"
SIDE = 8


def write_files() -> None:
    """Write everything into the working folder."""
    _write_models()
    _write_forest()
    Path("empty").mkdir()
    _write_arrays()
    _write_pictures()
    _write_symbols()
    _write_configs()


def save_model(
    path: str,
    nodes: Sequence[NodeProto],
    shape: Sequence[int | str],
    weights: Mapping[str, npt.NDArray[Any]] | None = None,
    *,
    kind: int = TensorProto.FLOAT,
    opset: int = 17,
    domains: Sequence[str] = (),
) -> None:
    """Write a model with one input `x` and the outputs of its last node."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", kind, list(shape))],
        [
            helper.make_tensor_value_info(name, kind, None)
            for name in nodes[-1].output
        ],
        [
            numpy_helper.from_array(array, name)
            for name, array in (weights or {}).items()
        ],
    )
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid(domain, 1) for domain in domains]
    onnx.save(helper.make_model(graph, opset_imports=opsets), path)


def _write_forest() -> None:
    """A classifier of scikit-learn as its converter writes it by default: a label, and dictionaries of scores."""
    with np.load(DIGITS / "calibration.npz") as digits:
        samples = digits["data"].reshape(-1, 64)
    classes = np.arange(len(samples)) % 3
    forest = RandomForestClassifier(2, max_depth=3, random_state=0)
    forest.fit(samples, classes)
    proto = skl2onnx.to_onnx(forest, samples[:1])
    onnx.save(proto, "forest.onnx")
    np.savez("rows.npz", X=samples, y=forest.predict(samples))


def _write_models() -> None:
    numbers = np.random.default_rng(0)
    weight = numbers.normal(size=(10, 3, SIDE, SIDE)).astype(np.float32)
    node = helper.make_node
    classifier = [
        node("Conv", ["x", "w"], ["c"], kernel_shape=[SIDE, SIDE]),
        node("Flatten", ["c"], ["y"]),
    ]
    shape = [1, 3, SIDE, SIDE]
    save_model("net.onnx", classifier, shape, {"w": weight})
    save_model("other.onnx", classifier, shape, {"w": 2 * weight})
    save_model("value.onnx", classifier, shape, {"w": weight[:1] / 8})
    save_model("open.onnx", classifier, [1, 3, "h", "w"], {"w": weight})
    fancy = node("FancyOp", ["x"], ["y"], name="fancy1", domain="com.acme")
    save_model("custom.onnx", [fancy], [1, 3], domains=["com.acme"])
    random = node("RandomNormalLike", ["x"], ["y"])
    save_model("random.onnx", [random], [1, 3])
    relu = [node("Relu", ["x"], ["y"])]
    save_model("opset99.onnx", relu, [1, 3], opset=99)
    identity = [node("Identity", ["x"], ["y"])]
    save_model("text.onnx", identity, [1, 3], kind=TensorProto.STRING)
    save_model(
        "open_text.onnx", identity, ["n", "columns"], kind=TensorProto.STRING
    )
    Path("pointer.onnx").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    )
    Path("cut.onnx").write_bytes(Path("net.onnx").read_bytes()[:500])
    Path("junk.onnx").write_bytes(bytes(range(256)))
    Path("empty.json").touch()
    Path("net.pt").write_bytes(b"PK\x03\x04")


def _write_arrays() -> None:
    numbers = np.random.default_rng(1)
    x = numbers.normal(size=(40, 3, SIDE, SIDE)).astype(np.float32)
    y = _classes_of_net(x)
    np.savez("data.npz", x=x, y=y)
    np.savez("unlabelled.npz", x=x)
    np.savez("one_hot.npz", x=x, y=np.eye(10)[y])
    np.savez("reals.npz", x=x, y=numbers.normal(size=len(x)))
    Path("errors_of_reals.py").write_text(
        "def mean(outputs, y):\n    return abs(outputs['y'].reshape(len(y)) - y).mean()\n"
    )
    np.savez("texts.npz", x=x, y=np.array(["cat"] * len(x)))
    np.savez("from_1.npz", x=x, y=np.arange(len(x)) % 10 + 1)
    np.savez("words.npz", x=np.array([["a", "b", "c"]] * 8))
    np.savez("three.npz", x=x[:3], y=y[:3])
    np.savez("nhwc.npz", x=x.transpose(0, 2, 3, 1))
    np.savez("names.npz", images=x, labels=y)
    np.savez("far.npz", x=x * 100)
    np.savez("wrong_shape.npz", x=x[..., :5])
    np.savez("integers.npz", x=np.full((1, 3, SIDE, SIDE), 130, np.int16))
    bad = x.copy()
    bad[3] = np.nan
    np.savez("nan.npz", x=bad)
    pickled = np.array([{}], object)
    np.save("pickled.npy", pickled, allow_pickle=True)


def _classes_of_net(x: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """The classes that net.onnx gives, so that its float accuracy is full."""
    model = onnx.load("net.onnx")
    weight = numpy_helper.to_array(model.graph.initializer[0])
    answers = np.einsum("nchw,kchw->nk", x, weight)
    return answers.argmax(axis=1)


def _write_pictures() -> None:
    numbers = np.random.default_rng(2)
    for folder in ("pictures", "broken", "classes/cat", "classes/dog"):
        Path(folder).mkdir(parents=True)
        for index in range(3):
            _picture(numbers, (SIDE, SIDE, 3), f"{folder}/{index}.png")
    Path("unnamed").mkdir()
    Path("unnamed/labels.csv").write_text("file,class\n")
    Path("broken/1.png").write_bytes(b"no")
    _picture(numbers, (48, 64, 3), "large.png")
    _picture(numbers, (SIDE, SIDE), "grey.png")


def _picture(
    numbers: np.random.Generator, shape: tuple[int, ...], path: str
) -> None:
    pixels = numbers.integers(0, 256, shape, np.uint8)
    Image.fromarray(pixels).save(path)


def _write_symbols() -> None:
    symbol = (DIGITS / "resnet_digits8-symbol.json").read_bytes()
    params = (DIGITS / "resnet_digits8-0000.params").read_bytes()
    for path in ("alone-symbol.json", "digits-symbol.json", "two-symbol.json"):
        Path(path).write_bytes(symbol)
    Path("digits-0000.params").write_bytes(params)
    for epoch in (39, 40):
        Path(f"two-00{epoch}.params").write_bytes(params)
    stranger = json.loads(symbol)
    for item in stranger["nodes"]:
        if item["name"] != "data":
            item["name"] = item["name"].replace("_", "X")
    Path("stranger-symbol.json").write_text(json.dumps(stranger))


def _write_configs() -> None:
    head = '[model]\npath = "net.onnx"\n[calibration]\ndata = "data.npz"\n'
    for name, rest in (
        ("misspelt", "[preprocessing]\nmeans = 1.0\n"),
        ("section", "[preprocesing]\nmean = 1.0\n"),
        ("text", '[quantization]\nbits = "8"\n'),
        ("broken", "[quantization\n"),
        ("layer", "[layers.yy]\nweight_bits = 8\n"),
        ("unweighted", "[layers.x]\nweight_bits = 4\n"),
    ):
        Path(f"{name}.toml").write_text(head + rest)
