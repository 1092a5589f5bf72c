"""Which inputs take bytes, what of the preprocessing stays outside, and the sentence for every bad combination."""

import json
from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest

from cvm.program import (
    Input,
    Instruction,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
)
from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.presets import prepared
from mrt.config import Config
from mrt.errors import BadData, BadOption
from mrt.pictures import (
    PROVENANCE,
    config_for,
    notes_of_floats,
    outside,
    provenance,
    table_key,
    take_bytes,
)
from tests.support.graphs import graph_of, node, run

U8 = Preprocessing(input_dtype="u8")
IMAGENET = replace(
    U8, scale=1 / 255, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)
)


def _model(
    *shapes: tuple[int, ...], dtype: ir.DataType | None = None
) -> ir.Model:
    names = "xyz"[: len(shapes)]
    nodes = [node("Relu", name, f"{name}r") for name in names]
    model = graph_of(
        nodes,
        dict(zip(names, shapes, strict=True)),
        outputs=" ".join(f"{name}r" for name in names),
    )
    if dtype is not None:
        model.graph.inputs[0].dtype = dtype
    return model


@pytest.mark.parametrize("color", ["RGB", "BGR"])
def test_the_model_makes_of_bytes_what_the_preprocessing_made_of_them(color):
    item = replace(IMAGENET, color=color)
    picture = (
        np.random.default_rng(1).integers(0, 256, (1, 8, 9, 3)).astype(np.uint8)
    )
    model = _model((1, 3, 8, 9))
    take_bytes(model, Config(preprocessing=item))
    found = run(model, {"x": picture.astype(np.float32)})["xr"]
    prepared = replace(item, layout="NHWC", input_dtype="real").apply(
        picture, (1, 3, 8, 9), "here"
    )
    assert np.abs(found - np.maximum(prepared, 0)).max() < 1e-5


def test_size_and_layout_stay_outside_and_arithmetic_does_not():
    model = _model((1, 3, 8, 9))
    item = replace(IMAGENET, color="BGR", resize=10, crop=9)
    take_bytes(model, Config(preprocessing=item))
    assert outside(model, {"x": item}) == {
        "x": Preprocessing(layout="NCHW", resize=10, crop=9, input_dtype="u8")
    }
    assert outside(model, {"x": replace(item, layout="HW")})["x"].layout == "HW"


def test_arrays_as_the_model_has_them_are_turned_into_pictures():
    model = _model((1, 3, 8, 9))
    take_bytes(model, Config(preprocessing=U8))
    planes = np.arange(216, dtype=np.uint8).reshape(3, 8, 9)
    found = outside(model, {"x": U8})["x"].apply(planes, (1, 8, 9, 3), "here")
    assert found[0, 2, 5].tolist() == planes[:, 2, 5].tolist()


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (
            np.full((8, 9, 3), 0.5, np.float32),
            "here: holds float32; with input_dtype = 'u8' the program takes a picture's own",
        ),
        (
            np.full((8, 9, 3), 300),
            "here: holds 300..300; input_dtype = 'u8' means bytes, 0..255",
        ),
        (
            np.full((8, 9, 3), -1),
            "here: holds -1..-1; input_dtype = 'u8' means bytes, 0..255",
        ),
    ],
)
def test_what_is_no_byte_is_refused(array, sentence):
    with pytest.raises(BadData, match=sentence.replace("(", r"\(")):
        replace(U8, layout="NHWC").apply(array, (1, 8, 9, 3), "here")


@pytest.mark.parametrize(
    ("model", "item", "sentence"),
    [
        (
            _model((1, 784)),
            U8,
            r"input 'x' of shape \[1, 784\] is no picture: input_dtype = 'u8' needs",
        ),
        (
            _model((2, 3, 8, 8)),
            U8,
            r"input 'x' of shape \[2, 3, 8, 8\] is no picture",
        ),
        (
            _model((1, 5, 8, 8)),
            U8,
            r"input 'x' of shape \[1, 5, 8, 8\] is no picture",
        ),
        (
            _model((1, 3, 4, 8)),
            U8,
            r"input 'x' of shape \[1, 3, 4, 8\] is no picture",
        ),
        (
            _model((1, 3, 8, 8), dtype=ir.DataType.UINT8),
            U8,
            "is for floats, this holds UINT8 already",
        ),
        (
            _model((1, 1, 8, 8)),
            IMAGENET,
            "input 'x': mean or std has 3 numbers, but the model has 1 channels",
        ),
        (
            _model((1, 1, 8, 8)),
            replace(U8, color="BGR"),
            "color = 'BGR' needs 3 channels, the model has 1",
        ),
        (
            _model((1, 3, 8, 8), (1, 3, 8, 8)),
            U8,
            r"a model of 2 inputs \(x, y\): say which of them takes pictures",
        ),
    ],
)
def test_bad_combinations_are_refused_in_a_sentence(model, item, sentence):
    with pytest.raises(BadOption, match=sentence):
        take_bytes(model, Config(preprocessing=item))


def test_of_several_inputs_those_named_take_bytes():
    model = _model((1, 3, 8, 8), (1, 7))
    config = Config(inputs={"x": U8})
    take_bytes(model, config)
    assert [tuple(value.shape.numpy()) for value in model.graph.inputs] == [
        (1, 8, 8, 3),
        (1, 7),
    ]
    left = outside(model, config.preprocessing_of(["x", "y"]))
    assert (left["x"].input_dtype, left["y"].input_dtype) == ("u8", "real")


def _program(stated: object, dtype: str = "u8") -> Program:
    text = stated if isinstance(stated, str) else json.dumps(stated)
    meaning = {"x": Meaning(1.0, 0, "x")}
    return Program(
        (Input("x", TensorType(dtype, (1, 8, 9, 3)), 0, 127),),
        (),
        (Instruction("reshape", (0,), {"shape": (216,)}),),
        (Output("y", 1),),
        Metadata(
            meaning,
            {},
            {},
            (),
            {PROVENANCE: text} if stated is not None else {},
        ),
    )


def test_a_program_says_what_it_does_to_bytes_and_is_believed_without_a_config():
    model = _model((1, 3, 8, 9))
    config = Config(preprocessing=replace(IMAGENET, color="BGR", crop=8))
    program = _program(json.loads(provenance(model, config)[PROVENANCE]))
    assert config_for(program, Config()).inputs == {
        "x": replace(IMAGENET, color="BGR")
    }
    assert config_for(program, config).inputs == {
        "x": replace(IMAGENET, color="BGR", crop=8)
    }


def test_a_program_of_reals_is_given_reals_whatever_the_config_says():
    config = config_for(
        _program(None), Config(preprocessing=IMAGENET, inputs={"x": IMAGENET})
    )
    assert (
        config.preprocessing
        == replace(IMAGENET, input_dtype="real")
        == config.inputs["x"]
    )


def test_numbers_that_change_nothing_contradict_a_program_if_they_are_stated():
    program = _program(
        {"x": {"color": "BGR", "scale": 1 / 255, "mean": [0.0], "std": [1.0]}}
    )
    config_for(program, Config(preprocessing=Preprocessing()))
    raw = prepared(Preprocessing(), {"preset": "raw"})
    with pytest.raises(BadOption, match=r"input 'x': scale = 1\.0 is given"):
        config_for(program, Config(preprocessing=raw))


def test_a_config_that_contradicts_the_program_is_refused():
    program = _program(
        {"x": {"color": "RGB", "scale": 1 / 255, "mean": [0.5], "std": [1.0]}}
    )
    with pytest.raises(
        BadOption,
        match=r"input 'x': mean = \(0.485, .* is given, but the program computes with \(0.5,\)",
    ):
        config_for(program, Config(preprocessing=IMAGENET))


@pytest.mark.parametrize(
    "stated",
    [
        "{",
        "7",
        {"q": {"color": "RGB", "scale": 1, "mean": [0], "std": [1]}},
        {"x": {"color": "RGB", "scale": 0, "mean": [0], "std": [1]}},
        {"x": {"color": "RGB", "scale": 1, "mean": [0], "std": [-1]}},
        {"x": {"color": "RGB", "scale": 1, "mean": 0, "std": [1]}},
        {"x": {"color": "RGB", "scale": 1, "mean": [0], "std": [1], "more": 1}},
        {"x": {"color": "GBR", "scale": 1, "mean": [0], "std": [1]}},
        {"x": {"color": "RGB", "scale": 10**400, "mean": [0], "std": [1]}},
        {"x": {"color": "RGB", "scale": 1, "mean": [0], "std": [10**400]}},
    ],
)
def test_a_program_that_states_nonsense_is_refused(stated):
    with pytest.raises(
        BadData,
        match="the program's provenance 'picture_inputs' cannot be used",
    ):
        config_for(_program(stated), Config())


def test_only_inputs_of_bytes_may_be_stated():
    good = {"x": {"color": "RGB", "scale": 1, "mean": [0], "std": [1]}}
    with pytest.raises(BadData, match="no input of bytes"):
        config_for(_program(good, "i8"), Config())


def test_a_calibration_table_is_for_the_model_with_this_picture_in_front_of_it():
    model = _model((1, 3, 8, 9))
    keys = {
        table_key("abc", model, Config(preprocessing=item))
        for item in (Preprocessing(), U8, IMAGENET)
    }
    assert len(keys) == 3 and "abc" in keys


@pytest.mark.parametrize(
    ("item", "shape", "names", "count"),
    [
        (replace(IMAGENET, input_dtype="real"), (1, 3, 8, 9), {"x"}, 1),
        (replace(IMAGENET, input_dtype="real"), (1, 3, 8, 9), {"y"}, 0),
        (replace(IMAGENET, input_dtype="real"), (1, 3), {"x"}, 0),
        (IMAGENET, (1, 3, 8, 9), {"x"}, 0),
        (Preprocessing(), (1, 3, 8, 9), {"x"}, 0),
    ],
)
def test_inputs_of_prepared_pictures_that_got_16_bits_are_noted(
    item, shape, names, count
):
    found = notes_of_floats(_model(shape), Config(preprocessing=item), names)
    assert len(found) == count
    assert all("input 'x'" in note for note in found)
