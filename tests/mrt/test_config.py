"""Config files: what they mean, and the sentence for everything they get wrong."""

from pathlib import Path

import pytest

from mrt.calibrate.preprocessing import Preprocessing
from mrt.config import (
    MOST_BYTES,
    Config,
    DataSettings,
    ModelSettings,
    load_config,
)
from mrt.errors import BadOption
from mrt.quantize import LayerBits, QuantizeOptions
from mrt.table.table import CalibrationOptions

FULL = """
[model]
path = "net-symbol.json"
params = "../net.params"
epoch = 3
random_weights = 4
outputs = ["conv0", "relu1"]
shapes = { data = [1, 3, 8, 8] }
values = { rate = 16000 }
labels = "classes.txt"

[preprocessing]
layout = "NHWC"
scale = "1/4"
mean = [1, 2.5, 3]
std = 2

[inputs.mask]
layout = "as is"
color = "BGR"
resize = 9
crop = 8
input_dtype = "u8"

[calibration]
data = "images"
samples = 10
arrays = { data = "x_calibration" }
labels = "y_calibration"
observer = "percentile"
percentile = 99.9

[evaluation]
data = "test.npz"

[quantization]
bits = 4
activation_bits = 16
scales = "shift"

[layers."conv0"]
bits = 8
activation_bits = 7
"""


def load(tmp_path: Path, text: str) -> Config:
    (tmp_path / "c.toml").write_text(text)
    return load_config(tmp_path / "c.toml")


def test_every_entry_is_read(tmp_path: Path) -> None:
    shared = {"scale": 0.25, "mean": (1.0, 2.5, 3.0), "std": (2.0,)}
    assert load(tmp_path, FULL) == Config(
        model=ModelSettings(
            tmp_path / "net-symbol.json",
            tmp_path / "../net.params",
            {"data": (1, 3, 8, 8)},
            tmp_path / "classes.txt",
            epoch=3,
            random_weights=4,
            outputs=("conv0", "relu1"),
            values={"rate": 16000.0},
        ),
        preprocessing=Preprocessing(layout="NHWC", **shared),
        inputs={
            "mask": Preprocessing(
                layout="as is",
                color="BGR",
                resize=9,
                crop=8,
                input_dtype="u8",
                **shared,
            )
        },
        calibration_data=DataSettings(
            tmp_path / "images", 10, {"data": "x_calibration"}, "y_calibration"
        ),
        calibration=CalibrationOptions("percentile", percentile=99.9, bits=16),
        evaluation_data=DataSettings(tmp_path / "test.npz"),
        quantization=QuantizeOptions(
            4, 16, scales="shift", layers={"conv0": LayerBits(8, 7)}
        ),
    )


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    found = load(tmp_path, "")
    assert found == Config()
    assert (
        found.quantization.weight_bits,
        found.quantization.activation_bits,
        found.quantization.scales,
    ) == (
        8,
        8,
        "real",
    )
    assert (
        found.calibration.observer,
        found.calibration.percentile,
        found.calibration.bits,
    ) == ("mse", 99.999, 8)


def test_an_absolute_path_stays(tmp_path: Path) -> None:
    assert load(tmp_path, '[model]\npath = "/a/b.onnx"').model.path == Path(
        "/a/b.onnx"
    )


def test_each_input_has_its_own_preprocessing_or_the_general_one(
    tmp_path: Path,
) -> None:
    config = load(tmp_path, FULL)
    found = config.preprocessing_of(["data", "mask"])
    assert (found["data"].layout, found["mask"].layout) == ("NHWC", "as is")
    with pytest.raises(
        BadOption,
        match=r"c\.toml: \[inputs.mask\] is for no input of the model; it has data",
    ):
        config.preprocessing_of(["data"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[modle]",
            "line 1: [modle]: unknown key; did you mean model? known are model, preprocessing, inputs, calibration",
        ),
        (
            "[model]\noutputs = 'conv0'",
            "[model] outputs = 'conv0': expected a list of names",
        ),
        (
            "[model]\npth = 'a'",
            "line 2: [model] pth = 'a': unknown key; did you mean path? known are path, params, shapes, labels, epoch, ",
        ),
        (
            "[preprocessing]\nmeans = 1",
            "[preprocessing] means = 1: unknown key; did you mean mean? known are layout, color, scale, mean, std",
        ),
        (
            "[inputs.a]\nsize = 1",
            "[inputs.a] size = 1: unknown key; did you mean resize? known are layout",
        ),
        (
            "[calibration]\nbatch = 1",
            "[calibration] batch = 1: unknown key; known are data, samples, arrays, labels, held_back, observer, percentile, bits",
        ),
        (
            "[evaluation]\nobserver = 'mse'",
            "[evaluation] observer = 'mse': unknown key; known are data, samples, arrays, labels",
        ),
        (
            "[quantization]\nbit = 8",
            "[quantization] bit = 8: unknown key; did you mean bits? known are bits, weight_bits",
        ),
        (
            "[layers.a]\nscales = 'real'",
            "[layers.a] scales = 'real': unknown key; known are bits, weight_bits, activation_bits",
        ),
        ("model = 3", "model = 3: expected a table, [model]"),
        ("[inputs]\na = 3", "inputs.a = 3: expected a table, [inputs.a]"),
        ("[model]\npath = 3", "[model] path = 3: expected text"),
        (
            '[model]\npath = "a\\u0000"',
            "[model] path = 'a\\x00': expected text",
        ),
        (
            "[model]\nshapes = { a = [0] }",
            "[model] shapes.a = [0]: expected a list of dimensions, each 1 or more",
        ),
        (
            "[model]\nshapes = [1]",
            "[model] shapes = [1]: expected a table, [model.shapes]",
        ),
        (
            "[preprocessing]\nscale = 'x'",
            "[preprocessing] scale = 'x': expected a finite number other than 0, or a fraction such as \"1/255\"",
        ),
        (
            "[preprocessing]\nscale = '1/0'",
            "[preprocessing] scale = '1/0': expected a finite number other than 0",
        ),
        (
            "[preprocessing]\nscale = true",
            "[preprocessing] scale = true: expected a finite number other than 0",
        ),
        (
            "[preprocessing]\nmean = 1" + "0" * 400,
            "...: expected finite numbers, or fractions such as",
        ),
        (
            "[preprocessing]\nscale = nan",
            "[preprocessing] scale = nan: expected a finite number other than 0",
        ),
        (
            "[preprocessing]\nstd = [1, -1]",
            "[preprocessing] std = [1, -1]: expected positive numbers",
        ),
        (
            "[inputs.a]\nlayout = 'NCWH'",
            "[inputs.a] layout = 'NCWH': expected one of as is, NCHW, NHWC, HW",
        ),
        (
            "[preprocessing]\nresize = 1.5",
            "[preprocessing] resize = 1.5: expected a number of pixels from 1 to 65536, or [height, width]",
        ),
        (
            "[calibration]\nsamples = 0",
            "[calibration] samples = 0: expected a number of samples, 1 or more",
        ),
        (
            "[calibration]\nobserver = 'max'",
            "[calibration] observer = 'max': expected one of minmax, percentile, entropy, mse",
        ),
        (
            "[calibration]\npercentile = 10",
            "[calibration] percentile = 10: expected a number above 50, up to 100",
        ),
        (
            "[calibration]\nbits = 40",
            "[calibration] bits = 40: expected a precision from 2 to 16",
        ),
        (
            "[quantization]\nbits = 16",
            "[quantization] bits = 16: expected auto, 2..8, or beside activation_bits 2..15",
        ),
        (
            "[quantization]\nactivation_bits = 9",
            "activation_bits = 9: expected one of 2, 3, 4, 5, 6, 7, 8, 16",
        ),
        (
            "[quantization]\nbits = true",
            "[quantization] bits = true: expected auto, 2..8, or",
        ),
        (
            "[quantization]\nscales = ['real']",
            "[quantization] scales = ['real']: expected one of real, shift",
        ),
        (
            "[layers.a]\nweight_bits = 1",
            "[layers.a] weight_bits = 1: expected one of 2, 3, 4, 5, 6, 7, 8",
        ),
        (
            "[model.values]\nrate = inf",
            "[model] values.rate = inf: expected a finite number or a fraction",
        ),
        (
            "[quantization]\nbits = '8'",
            "line 2: [quantization] bits = '8': expected auto, 2..8, or beside activation_bits 2..15; "
            "'8' is text, write 8 without quotes",
        ),
        (
            "[quantization]\nunsigned = 'true'",
            "expected true or false; 'true' is text, write true without quotes",
        ),
        (
            "[preprocessing]\nmean = ['1', '2.5']",
            "['1', '2.5'] is text, write [1, 2.5] without quotes",
        ),
        (
            "[quantization]\nscheme = 'affine'\nbits = 12",
            "line 3: [quantization] bits = 12: activations take 2..8 or 16 bits; for weights alone give weight_bits 12",
        ),
        (
            "[quantization]\nbits = 'all'",
            "line 2: [quantization] bits = 'all': expected auto, 2..8, or",
        ),
        (
            "[quantization]\nbits = 'auto'\nstream_bits = 16",
            "line 2: [quantization] bits = 'auto': auto chooses them all: leave stream_bits away",
        ),
        (
            "[layers.a]\nbits = 'auto'",
            "line 2: [layers.a] bits = 'auto': expected 2..8, or beside activation_bits 2..15",
        ),
        (
            "[layers.a]\nbits = 12",
            "line 2: [layers.a] bits = 12: activations take 2..8 or",
        ),
        (
            "[inputs.a]\npreset = 'tf'\npreprocessor = 'p.json'",
            "line 2: [inputs.a] preset = 'tf': preprocessor is given, too; give one of the two",
        ),
        (
            "[preprocessing]\npreset = 'imagnet'",
            "expected one of imagenet, caffe, tf, 0..1, raw; a preprocessor_config.json is for",
        ),
        ("a = 1979-05-27", "line 1: a = 1979-05-27: unknown key"),
        (
            "[model]\npath." + "a." * 2000 + "a = 1",
            "has tables in tables too deep",
        ),
        ("[model]\nepoch = '" + "[" * 5000 + "'", "expected an integer"),
        ("[model]\nepoch = '1" + "0" * 5000 + "'", "expected an integer"),
        ("a = ", "is not TOML (Invalid value"),
        ("a = " + "[" * 10_000, "is not TOML ("),
        ("a = 1" + "0" * 5000, "is not TOML ("),
    ],
)
def test_what_a_file_gets_wrong_is_said_with_its_name(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(BadOption) as caught:
        load(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'c.toml'}: ")
    assert sentence in str(caught.value)


SEVERAL = """\
# what is wrong stands in seven lines
[model]
pth = "m.onnx"
shapes = { ok = [1], data = [0] }
[quantization]
scheme = "afine"
"bits" = "8"
[preprocessing]
mean = [1, 2]
std = [
  1,  # the line is that of the key
  0,
]
[inputs.'a b']
crop = 2.5
[layers]
conv0.weight_bits = 99
"""


def test_all_that_a_file_gets_wrong_is_said_at_once_in_its_order(
    tmp_path: Path,
) -> None:
    with pytest.raises(BadOption) as caught:
        load(tmp_path, SEVERAL)
    first, *more = caught.value.lines
    assert first == f"{tmp_path / 'c.toml'}: 7 entries cannot be used"
    assert [line.partition(" = ")[0].strip() for line in more] == [
        "line 3: [model] pth",
        "line 4: [model] shapes.data",
        "line 6: [quantization] scheme",
        "line 7: [quantization] bits",
        "line 10: [preprocessing] std",
        "line 15: [inputs.'a b'] crop",
        "line 17: [layers.conv0] weight_bits",
    ]


def test_a_message_has_no_more_lines_than_one_reads(tmp_path: Path) -> None:
    with pytest.raises(BadOption) as caught:
        load(tmp_path, "".join(f"a{n} = 1\n" for n in range(60)))
    assert caught.value.lines[0].endswith(": 60 entries cannot be used")
    assert len(caught.value.lines) == 52
    assert caught.value.lines[-1].strip() == "and 10 more"


def test_a_file_of_another_size_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b"#" * MOST_BYTES)
    assert load_config(tmp_path / "c.toml") == Config()
    (tmp_path / "c.toml").write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(BadOption, match=r"has more than 1048576 bytes"):
        load_config(tmp_path / "c.toml")


def test_bits_of_weights_alone_may_be_more(tmp_path: Path) -> None:
    found = load(tmp_path, "[quantization]\nbits = 12\nactivation_bits = 8\n")
    assert found.quantization.weight_bits == 12


def test_a_former_name_of_a_stage_is_read(tmp_path: Path) -> None:
    found = load(tmp_path, "[refinement]\ntwins = false\n").refinement
    assert not found.duplicates


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        BadOption, match=r"gone\.toml: cannot be read \(No such file"
    ):
        load_config(tmp_path / "gone.toml")
    (tmp_path / "c.toml").write_bytes(b"\xff")
    with pytest.raises(BadOption, match=r"c\.toml: is not TOML"):
        load_config(tmp_path / "c.toml")


def test_plain_weights_and_values_are_a_config_s_to_ask_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "c.toml"
    for text, expected in (
        ("", (True, True)),
        ("per_channel = false\nunsigned = false", (False, False)),
    ):
        path.write_text(f"[quantization]\n{text}\n", encoding="utf-8")
        found = load_config(path).quantization
        assert (found.per_channel, found.unsigned) == expected
