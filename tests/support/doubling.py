"""The smallest model that the comparison of layers can be worked out on by hand: y = 2 x, in integers."""

import numpy as np
import onnx_ir as ir
from onnx import TensorProto, helper

from cvm.program import (
    Input,
    Instruction,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import Proven, validate
from mrt.calibrate.samples import Sample, Samples

IMAGE = (1, 2, 3, 2)  # channels, rows, columns


def doubling_model(name: str = "y") -> ir.Model:
    """y = 2 x, and its negative as the output."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Add", ["x", "x"], [name]),
        helper.make_node("Neg", [name], ["z"]),
    ]
    values = [
        info("x", TensorProto.FLOAT, IMAGE),
        info("z", TensorProto.FLOAT, IMAGE),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        values[:1],
        values[1:],
        value_info=[info(name, TensorProto.FLOAT, IMAGE)],
    )
    return ir.from_proto(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
        )
    )


def doubling_program(
    name: str = "y", *, channels: tuple[float, ...] = ()
) -> Proven:
    """Halves stand for x; y is held in integers of scale 1, so 2x is exact until 20, and lies with its channels last."""
    meanings = {
        3: Meaning(1.0, 0, name, channels),
        4: Meaning(1.0, 0, "nothing of the model"),
    }
    instructions = (
        Instruction("cast", (0,), {"dtype": "i32"}),
        Instruction("transpose", (1,), {"perm": (0, 2, 3, 1)}),
        Instruction("clamp", (2,), {"min": -20, "max": 20}),
        Instruction("transpose", (3,), {"perm": (0, 3, 1, 2)}),
        Instruction("negate", (4,), {"input_zp": 0, "output_zp": 0}),
    )
    inputs = (Input("x", TensorType("i8", IMAGE), -100, 100),)
    metadata = Metadata(
        inputs={"x": Meaning(0.5, 0)},
        outputs={"z": Meaning(1.0, 0)},
        values=meanings,
    )
    return validate(
        Program(inputs, (), instructions, (Output("z", 5),), metadata)
    )


def samples(*images: np.ndarray) -> Samples:
    items: list[Sample] = [{"x": image.astype(np.float32)} for image in images]
    return Samples(("x",), len(items), None, "images", lambda: iter(items))


def numbers(*values: float) -> np.ndarray:
    return np.array(values, np.float32).reshape(IMAGE)
