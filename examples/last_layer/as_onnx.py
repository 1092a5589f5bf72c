"""Writes a trained last layer as an ONNX model, for `mrt convert`.

python examples/last_layer/as_onnx.py last.npz last.onnx
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main(trained, destination):
    with np.load(trained, allow_pickle=False) as file:
        arrays = [file["weights"], file["bias"]]
    inputs, classes = arrays[0].shape
    layer = helper.make_node("Gemm", ["features", "weights", "bias"], ["scores"])
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size])
        for name, size in (("features", inputs), ("scores", classes))
    ]
    weights = [
        numpy_helper.from_array(array.astype(np.float32), name)
        for array, name in zip(arrays, ("weights", "bias"), strict=True)
    ]
    graph = helper.make_graph([layer], "last layer", ends[:1], ends[1:], weights)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), destination)
    print(f"wrote {destination}: {inputs} features to {classes} classes")


if __name__ == "__main__":
    main(*sys.argv[1:])
