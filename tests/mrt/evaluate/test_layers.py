"""Layers of a program beside their float twins: noise and clipping by hand, axes in another order, the page."""

import json
import math
from html.parser import HTMLParser

import numpy as np
import onnx_ir as ir
import pytest
from mrt.evaluate.page import page
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
from mrt.errors import BadData
from mrt.evaluate import layers_report
from mrt.evaluate.layers import Layer, compare_layers

IMAGE = (1, 2, 3, 2)  # channels, rows, columns
EVIL = 'y<script>alert("&")</script>\u00fc'


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


def doubling_program(name: str = "y") -> Proven:
    """Halves stand for x; y is held in integers of scale 1, so 2x is exact until 20, and lies with its channels last."""
    meanings = {
        3: Meaning(1.0, 0, name),
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


def test_noise_and_clipping_are_those_of_the_numbers() -> None:
    # doubled: 1..11 exact, and 24, which the clamp holds at 20: noise 4^2, signal 1 + 4 + .. + 121 + 576 = 1082
    image = numbers(0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 12)
    (layer,) = compare_layers(
        doubling_model(), doubling_program(), samples(image)
    )
    assert (layer.number, layer.instruction, layer.source, layer.dtype) == (
        3,
        "clamp",
        "y",
        "i32",
    )
    assert (layer.low, layer.high) == (-20, 20)
    assert layer.snr_db == pytest.approx(10 * math.log10(1082 / 16))
    assert layer.clipped == 1 / 12


def test_a_value_within_a_step_of_the_end_is_not_clipped() -> None:
    (layer,) = compare_layers(
        doubling_model(), doubling_program(), samples(np.full(IMAGE, 10.4))
    )
    assert layer.clipped == 0


def test_samples_add_up_and_nothing_differs_where_nothing_differs() -> None:
    (layer,) = compare_layers(
        doubling_model(),
        doubling_program(),
        samples(np.ones(IMAGE), np.full(IMAGE, 2.0)),
    )
    assert layer.snr_db is None
    assert layer.count == 24
    assert int(layer.real.counts.sum()) == int(layer.integer.counts.sum()) == 24


def test_progress_counts_samples() -> None:
    steps: list[tuple[str, int, int]] = []
    compare_layers(
        doubling_model(),
        doubling_program(),
        samples(np.ones(IMAGE), np.ones(IMAGE)),
        lambda *step: steps.append(step),
    )
    assert steps == [("comparing", 1, 2), ("comparing", 2, 2)]


def test_a_program_without_meanings_is_refused() -> None:
    program = doubling_program().program
    metadata = Metadata(
        inputs=program.metadata.inputs, outputs=program.metadata.outputs
    )
    bare = validate(
        Program(
            program.inputs,
            program.constants,
            program.instructions,
            program.outputs,
            metadata,
        )
    )
    with pytest.raises(BadData, match="does not say which float value"):
        compare_layers(doubling_model(), bare, samples(np.ones(IMAGE)))


def layer(number: int, decibels: float | None) -> Layer:
    found = Layer(number, "rescale", f"v{number}", "i8", 0.5, -64.0, 63.5)
    exact = np.array([1.0, -1.0])
    noise = 0.0 if decibels is None else 10 ** (-decibels / 20)
    found.add(exact, exact * (1 + noise))
    return found


def test_the_table_and_json_say_the_same_in_their_own_order() -> None:
    layers = [layer(4, 30), layer(5, None), layer(6, 10), layer(7, 20)]
    lines = layers_report.table(layers, 3)
    assert [line.split()[1] for line in lines[1:4]] == ["%6", "%7", "%4"]
    assert lines[1].split()[0] == "10.0"
    assert lines[4] == "and 1 more, all better"
    assert layers_report.table(layers)[4].split()[:2] == [
        "-",
        "%5",
    ]
    found = json.loads(json.dumps(layers_report.to_json(layers, 9)))
    assert found["samples"] == 9
    assert [item["value"] for item in found["layers"]] == [4, 5, 6, 7]
    assert found["layers"][1]["snr_db"] is None
    assert found["layers"][2]["snr_db"] == pytest.approx(10)


class Page(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_links_every_layer_to_its_histogram_and_loads_nothing() -> (
    None
):
    found = Page()
    text = page([layer(4, 30), layer(5, None), layer(6, -3)], "three", 2)
    found.feed(text)
    sections = {
        attributes["id"] for tag, attributes in found.tags if tag == "section"
    }
    links = [attributes["href"] for tag, attributes in found.tags if tag == "a"]
    assert sections == {"v4", "v5", "v6"}
    assert sorted(links) == sorted(2 * ["#v4", "#v5", "#v6"])
    assert sum(tag == "circle" for tag, _ in found.tags) == 3
    assert not {"script", "link", "img", "iframe"} & {
        tag for tag, _ in found.tags
    }
    assert "http" not in text


def test_the_page_escapes_what_the_model_says() -> None:
    layers = compare_layers(
        doubling_model(EVIL),
        doubling_program(EVIL),
        samples(np.full(IMAGE, 3.0)),
    )
    found = Page()
    text = page(layers, EVIL, 1)
    found.feed(text)
    assert "script" not in {tag for tag, _ in found.tags}
    assert EVIL in found.text
    assert text.isascii()
