"""The networks of `make privacy`: three trained here on scikit-learn's digits, the bundled ones, two of shared data."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.cache import converter

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("MRT_SHARED", ROOT.parent / "shared")) / "data"
PARTIES = ("aby3", "aby3, secret weights", "semi2k", "cheetah")
ENCRYPTED = "concrete"
ALL = (*PARTIES, ENCRYPTED)
LEAST = ("aby3",)


@dataclass(frozen=True)
class PrivateModel:
    """A network by the name of its config, or of what is trained here; `settings` are the protocols that it runs under."""

    name: str
    settings: tuple[str, ...] = ALL
    trained: bool = False
    shared: bool = False
    samples: int = 0  # 0: as many as asked for
    narrow: tuple[str, ...] = ()  # options of the program to encrypt

    def runs(self, setting: str) -> bool:
        """Whether it is to run under this protocol."""
        return setting in self.settings

    def options(self, setting: str) -> tuple[str, ...]:
        """How it is converted for this protocol; with 8 bits by default."""
        return self.narrow if setting == ENCRYPTED else ()

    def missing(self) -> str:
        """Why it cannot run here; empty if it can."""
        absent = self.shared and not SHARED.is_dir()
        return f"{SHARED} is absent" if absent else ""

    def conversion(self, folder: Path) -> list[str]:
        """The arguments of `mrt convert`, but for the bits."""
        if not self.trained:
            return ["--config", str(ROOT / "configs" / f"{self.name}.toml")]
        data = folder / "digits.npz"
        model = folder / f"{self.name}.onnx"
        onnx.save(trained(self.name, data), model)
        return [str(model), "--data", str(data)]

    def converted(self, folder: Path, *options: str) -> Path:
        """The program with these options, or with 8 bits; made once by each version of the converter."""
        cache = folder / converter()[:16]
        program = cache / f"{self.name}{''.join(options)}.cvm"
        if not program.is_file():
            cache.mkdir(parents=True, exist_ok=True)
            chosen = options or (
                *("--bits", "8"),
                *("--compared-bits", "8"),
            )
            words = (*self.conversion(folder), *chosen, "-o", str(program))
            command = (sys.executable, "-m", "mrt", "convert", "-q")
            subprocess.run([*command, *words], check=True, cwd=ROOT)
        return program


MODELS = (
    PrivateModel("lr", trained=True),
    PrivateModel(
        "mlp", trained=True, narrow=("--bits", "2", "--scales", "shift")
    ),
    PrivateModel(
        "tree", ("aby3", "semi2k", "cheetah", ENCRYPTED), trained=True
    ),  # it has no weights
    PrivateModel("lenet_digits28"),
    PrivateModel("resnet_digits8"),
    PrivateModel("mxnet_mnist", PARTIES, shared=True),
    PrivateModel("mobilenetv1_0.25_keras", LEAST, shared=True, samples=1),
)


def digits() -> tuple[Any, Any]:
    """Images of 64 grey values from 0 to 1, and their labels."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return (images / 16).astype(np.float32), labels


def trained(name: str, data: Path, count: int | None = None) -> onnx.ModelProto:
    """A classifier of the first digits, or of all, as ONNX; the calibration samples go to `data`."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.tree import DecisionTreeClassifier

    images, labels = (x[:count] for x in digits())
    np.savez(data, data=images[:256])
    if name == "lr":
        fitted = LogisticRegression(max_iter=500, C=0.3).fit(images, labels)
        return _graph(*_gemms([(fitted.coef_.T, fitted.intercept_)]))
    if name == "mlp":
        layers = MLPClassifier((32,), alpha=0.1, max_iter=2000, random_state=0)
        layers.fit(images, labels)
        return _graph(
            *_gemms(list(zip(layers.coefs_, layers.intercepts_, strict=True)))
        )
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)
    return _graph([_tree(tree.fit(images, labels).tree_)], [], ("ai.onnx.ml",))


def _gemms(layers: list[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    """Dense layers with ReLU between them."""
    nodes, arrays, value = [], [], "data"
    for number, (weights, bias) in enumerate(layers):
        last = number == len(layers) - 1
        names = f"w{number}", f"b{number}"
        for name, array in zip(names, (weights, bias), strict=True):
            arrays.append(
                numpy_helper.from_array(
                    np.ascontiguousarray(array, np.float32), name
                )
            )
        result = "y" if last else f"sum{number}"
        nodes.append(helper.make_node("Gemm", [value, *names], [result]))
        if not last:
            value = f"relu{number}"
            nodes.append(helper.make_node("Relu", [result], [value]))
    return nodes, arrays


def _tree(tree: Any) -> Any:
    """A decision tree whose outputs are the shares of each class."""
    leaf = tree.children_left < 0
    count, classes = len(leaf), tree.value.shape[2]
    leaves = np.flatnonzero(leaf)
    return helper.make_node(
        "TreeEnsembleRegressor",
        ["data"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=classes,
        nodes_treeids=[0] * count,
        nodes_nodeids=list(range(count)),
        nodes_featureids=np.maximum(tree.feature, 0).tolist(),
        nodes_values=np.where(leaf, 0, tree.threshold).tolist(),
        nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_truenodeids=np.maximum(tree.children_left, 0).tolist(),
        nodes_falsenodeids=np.maximum(tree.children_right, 0).tolist(),
        target_treeids=[0] * len(leaves) * classes,
        target_nodeids=np.repeat(leaves, classes).tolist(),
        target_ids=np.tile(np.arange(classes), len(leaves)).tolist(),
        target_weights=tree.value[leaves, 0].reshape(-1).tolist(),
    )


def _graph(
    nodes: list[Any], arrays: list[Any], domains: tuple[str, ...] = ()
) -> onnx.ModelProto:
    """From data [1, 64] to y [1, 10]."""
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("data", [1, 64]), ("y", [1, 10]))
    ]
    graph = helper.make_graph(nodes, "digits", ports[:1], ports[1:], arrays)
    opsets = [
        helper.make_opsetid("", 17),
        *(helper.make_opsetid(domain, 3) for domain in domains),
    ]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)
