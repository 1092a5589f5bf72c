"""Models that stand side by side in one graph are rewritten as each is alone: no pass stops at the first.

Every operator case is put into one graph with the others of its opset, in two orders. A pass that ends its walk early, or
that mixes two nodes up, leaves other operators behind than it leaves in each case alone.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest
from onnx import compose, helper

from mrt.errors import MrtError
from mrt.frontend.onnx import load_onnx
from mrt.rewrite import rewrite
from tests.support.operator_cases import CASES, Case


def operators(proto: onnx.ModelProto, folder: Path) -> Counter[str]:
    """How often each operator is left after rewriting."""
    onnx.save(proto, folder / "case.onnx")
    model, _ = load_onnx(folder / "case.onnx")
    rewrite(model)
    return Counter(node.op_type for node in model.graph)


def side_by_side(protos: Sequence[onnx.ModelProto]) -> onnx.ModelProto:
    """One model with the inputs, nodes and outputs of all."""
    graphs = [
        compose.add_prefix(proto, f"case{number}_").graph
        for number, proto in enumerate(protos)
    ]
    graph = helper.make_graph(
        [node for graph in graphs for node in graph.node],
        "side_by_side",
        [value for graph in graphs for value in graph.input],
        [value for graph in graphs for value in graph.output],
        [tensor for graph in graphs for tensor in graph.initializer],
    )
    return helper.make_model(graph, opset_imports=protos[0].opset_import)


CASES_OF: dict[int, list[Case]] = defaultdict(list)
for case in CASES:
    CASES_OF[case.opset].append(case)


@pytest.mark.parametrize("opset", sorted(CASES_OF))
def test_rewriting_leaves_what_it_leaves_alone(
    opset: int, tmp_path: Path
) -> None:
    protos, alone = [], Counter[str]()
    for case in CASES_OF[opset]:
        proto = case.model()
        try:
            alone += operators(proto, tmp_path)
        except MrtError:
            continue
        protos.append(proto)
    assert protos
    for order in (protos, protos[::-1]):
        assert operators(side_by_side(order), tmp_path) == alone
