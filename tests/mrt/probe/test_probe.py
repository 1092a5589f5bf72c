"""`mrt probe` and `mrt calibrate --extremes`: ranges from two integers a value, the same table whoever gathered them."""

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

import cvm
import cvm.cli
from cvm.file import format as file_format
from cvm.program import TensorType
from cvm.proof.validate import validate
from cvm.runtime.accumulation import Carried, accumulate
from cvm.runtime.backends import BackendOptions, open_backend
from mrt import pipeline
from mrt.cli import cli
from mrt.errors import BadData, BadModel
from mrt.probe.probe import KEY, make_probe, plain
from mrt.probe.table import read_extremes, table_from, watched_by
from mrt.settings import settings_of
from mrt.table.table import CalibrationTable
from tests.support.graphs import build, graph_of, node
from tests.support.spu import needs_spu

ROOT = Path(__file__).resolve().parents[3]
CONFIG = ROOT / "configs" / "resnet_digits8.toml"
DIGITS = ROOT / "calibration_data" / "digits8" / "calibration.npz"


def quiet(*_):
    """No progress is shown."""


def settings(config=CONFIG):
    return settings_of(None, {"config": config})


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    """A probe whose formats are of 8 digits, and 24 others that it is run on."""
    folder = tmp_path_factory.mktemp("probe")
    digits = np.load(DIGITS)["data"]
    np.savez(folder / "public.npz", data=digits[:8])
    np.savez(folder / "private.npz", data=digits[8:32])
    words = ["--config", str(CONFIG), "--data", str(folder / "public.npz")]
    run(cli, "probe", *words, "-o", str(folder / "probe.cvm"))
    return folder


def run(command, *words):
    done = CliRunner().invoke(command, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.output


def gathered(folder, machine=None):
    """The extremes of the private digits, written to a file."""
    form = validate(file_format.read(folder / "probe.cvm"))
    carried = Carried.of(form)
    samples = carried.samples(folder / "private.npz", real=True)
    found = accumulate(
        carried, machine or cvm.load(folder / "probe.cvm").machine, samples
    )
    path = folder / "extremes.npz"
    np.savez(path, **found)
    return path, found


def test_nothing_comes_out_but_two_integers_a_value_and_the_count(private):
    program = file_format.read(private / "probe.cvm")
    form = validate(program)
    assert {item.name: form.types[item.value] for item in program.outputs} == {
        "extremes": TensorType("i32", (1, 26)),
        "samples": TensorType("i32", (1,)),
    }
    _, found = gathered(private)
    assert found["samples"].tolist() == [24]


def test_the_ranges_are_those_that_calibration_in_clear_measures(private):
    """Of onnxruntime on the same samples, but for the rounding of 16-bit values and 8-bit weights."""
    path, _ = gathered(private)
    table = table_from(settings(), private / "probe.cvm", path, quiet)
    data = replace(settings().calibration_data, path=private / "private.npz")
    clear = pipeline.make_table(
        replace(plain(settings()), calibration_data=data), quiet
    )
    assert len(table.ranges) == 13 and table.samples == 24
    for name, item in table.ranges.items():
        other = clear.ranges[name]
        width = other.max - other.min
        assert abs(item.min - other.min) < 0.03 * width, name
        assert abs(item.max - other.max) < 0.03 * width, name


def test_the_table_makes_a_program(private):
    gathered(private)
    table, out = private / "table.json", private / "out.cvm"
    said = run(
        cli,
        *("calibrate", "--config", CONFIG, "--probe", private / "probe.cvm"),
        *("--extremes", private / "extremes.npz", "-o", table),
    )
    assert said == f"wrote {table}: 13 ranges from 24 samples\n"
    assert CalibrationTable.load(table).options.observer == "minmax"
    said = run(cli, "convert", "--config", CONFIG, "--table", table, "-o", out)
    assert "SNR" in said and ": good" in said


@needs_spu
def test_parties_and_the_machine_in_clear_give_one_table_to_the_byte(private):
    digits = np.load(private / "private.npz")["data"]
    np.savez(private / "private.npz", data=digits[:2])
    path, _ = gathered(private)
    clear = table_from(settings(), private / "probe.cvm", path, quiet).text()
    form = validate(file_format.read(private / "probe.cvm"))
    machine = open_backend("spu", BackendOptions("aby3"), form)
    path, _ = gathered(private, machine)
    assert (
        table_from(settings(), private / "probe.cvm", path, quiet).text()
        == clear
    )
    np.savez(private / "private.npz", data=digits)


def test_values_that_reached_the_end_of_their_format_are_named(private):
    path, found = gathered(private)
    program = file_format.read(private / "probe.cvm")
    names = [
        one[0] for one in json.loads(program.provenance_of("probe"))["values"]
    ]
    found["extremes"][0, 3] = 32767
    np.savez(path, **found)
    with pytest.raises(BadData) as refused:
        table_from(settings(), private / "probe.cvm", path, quiet)
    assert str(refused.value).startswith(
        f"1 of 13 values reached the end of what the probe can hold ({names[3]}); make another probe: --widen"
    )
    found["extremes"][0, 3], found["extremes"][0, 13 + 5] = 9, 32767  # negated
    np.savez(path, **found)
    with pytest.raises(BadData, match=f"of 13 values .*{names[5]}"):
        table_from(settings(), private / "probe.cvm", path, quiet)


def test_samples_far_outside_the_public_ones_reach_it(private):
    digits = np.load(private / "private.npz")["data"]
    np.savez(private / "private.npz", data=100 * digits)
    path, _ = gathered(private)
    np.savez(private / "private.npz", data=digits)
    with pytest.raises(BadData, match="reached the end"):
        table_from(settings(), private / "probe.cvm", path, quiet)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"samples": [3]}, "holds no extremes"),
        (
            {"samples": [3], "extremes": [[1, 2]]},
            r"this probe gives int32\[1, 26\] of int32\[1\]",
        ),
        ({"samples": [0], "extremes": [[0] * 26]}, "are of 0 samples"),
    ],
)
def test_a_file_of_other_arrays_is_refused(private, arrays, sentence):
    path = private / "bad.npz"
    np.savez(
        path,
        **{name: np.array(array, np.int32) for name, array in arrays.items()},
    )
    with pytest.raises(BadData, match=sentence):
        table_from(settings(), private / "probe.cvm", path, quiet)


def test_a_file_that_is_none_is_refused(private):
    with pytest.raises(BadData, match="holds no extremes"):
        read_extremes(CONFIG)


def damaged(path):
    """Write a file of these arrays whose compressed bytes are changed in the middle."""
    zeros = np.zeros((1, 4096), np.int32)
    np.savez_compressed(path, extremes=zeros, samples=np.int32([3]))
    data = bytearray(path.read_bytes())
    data[170:176] = b"\xff" * 6
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda path: path.write_bytes(b""), "is not a readable .npz file"),
        (
            lambda path: path.write_bytes(b"PK\3\4" + b"?" * 40),
            "is not a readable .npz file",
        ),
        (damaged, "array 'extremes': "),
        (
            lambda path: np.savez(path, extremes=np.array(["a"])),
            "array 'extremes': holds <U1, expected real numbers",
        ),
        (
            lambda path: np.savez(path, extremes=np.zeros((10**12, 0), "i4")),
            "no array 'samples'",
        ),
    ],
    ids=["empty", "junk", "damaged", "text", "no elements"],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, write, reason):
    path = tmp_path / "e.npz"
    write(path)
    with pytest.raises(BadData) as caught:
        read_extremes(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: holds no extremes ({reason}")
    assert text.endswith("); cvm accumulate writes them")


def test_a_small_file_that_unpacks_to_a_large_array_is_refused(tmp_path):
    path = tmp_path / "e.npz"
    zeros = np.zeros((1, 2**23), np.int32)
    np.savez_compressed(path, extremes=zeros, samples=np.int32([3]))
    del zeros
    assert path.stat().st_size < 2**17
    tracemalloc.start()
    try:
        with pytest.raises(BadData, match="has 33554432 bytes, more than"):
            read_extremes(path)
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("place", "number"),
    [(1, 1e308), (2, 10**400), (3, -(2**31) - 1), (4, 2**31 + 1)],
    ids=["scale", "zero point", "least", "greatest"],
)
def test_a_probe_of_impossible_formats_is_refused(private, place, number):
    program = file_format.read(private / "probe.cvm")
    content = json.loads(program.provenance_of(KEY))
    content["values"][0][place] = number
    provenance = program.metadata.provenance | {KEY: json.dumps(content)}
    metadata = replace(program.metadata, provenance=provenance)
    changed = replace(program, metadata=metadata)
    with pytest.raises(BadData, match="is no probe; mrt probe writes one"):
        watched_by(changed, private / "probe.cvm")


def test_a_probe_of_another_model_is_refused(private):
    path, _ = gathered(private)
    other = settings(ROOT / "configs" / "lenet_digits28.toml")
    with pytest.raises(BadData, match="is a probe of another model"):
        table_from(other, private / "probe.cvm", path, quiet)


def test_a_program_that_is_no_probe_is_refused(private):
    table = private / "own.cvm"
    run(cli, "convert", "--config", CONFIG, "-o", table)
    path, _ = gathered(private)
    with pytest.raises(BadData, match="is no probe; mrt probe writes one"):
        table_from(settings(), table, path, quiet)


def test_options_of_samples_do_not_go_with_extremes(private):
    words = ["calibrate", "--config", CONFIG, "--probe", private / "probe.cvm"]
    rest = ["--extremes", "e.npz", "-o", "t.json"]
    done = CliRunner().invoke(
        cli, [*map(str, [*words, *rest, "--observer", "mse"])]
    )
    assert done.exit_code == 2 and "leave --observer away" in done.output
    cluster = ["--cluster", "tcp://127.0.0.1:1"]
    done = CliRunner().invoke(cli, [*map(str, [*words, *rest, *cluster])])
    assert done.exit_code == 2 and "leave --cluster away" in done.output
    done = CliRunner().invoke(cli, [*map(str, [*words, "-o", "t.json"])])
    assert done.exit_code == 2 and "give both" in done.output


def test_states_of_a_recurrence_share_their_range(tmp_path):
    """An LSTM of 4 steps: calibration in clear has one range for its states, and so has the table of extremes."""
    random = np.random.default_rng(3)
    shapes = {"w": (1, 24, 5), "r": (1, 24, 6), "b": (1, 48)}
    arrays = {
        name: random.normal(size=shape).astype(np.float32) / 2
        for name, shape in shapes.items()
    }
    one = node("LSTM", "x w r b", "y", hidden_size=6)
    ir.save(graph_of([one], {"x": (4, 1, 5)}, arrays), tmp_path / "m.onnx")
    np.savez(tmp_path / "private.npz", x=random.normal(size=(9, 4, 1, 5)))
    config = settings_of(tmp_path / "m.onnx", {})
    probe = make_probe(config, widen=4, progress=quiet)
    assert probe.synthetic
    file_format.write(probe.program, tmp_path / "probe.cvm")
    path, _ = gathered(tmp_path)
    table = table_from(config, tmp_path / "probe.cvm", path, quiet)
    data = replace(config.calibration_data, path=tmp_path / "private.npz")
    clear = pipeline.make_table(
        replace(plain(config), calibration_data=data), quiet
    )
    groups: dict[tuple[float, float], set[str]] = {}
    for name, item in clear.ranges.items():
        groups.setdefault((item.min, item.max), set()).add(name)
    assert max(map(len, groups.values())) > 4
    for (least, most), names in groups.items():
        near = 0.02 * (most - least)
        for name in names & table.ranges.keys():
            assert table.ranges[name].min == pytest.approx(least, abs=near)
            assert table.ranges[name].max == pytest.approx(most, abs=near)
    pipeline.convert(config, table=table, progress=quiet)


def integral(kind, nodes, weights):
    """A model of one input of 8 integers."""
    model = build(nodes, {"x": (1, 8)}, weights, outputs="y")
    model.graph.input[0].type.tensor_type.elem_type = kind
    return model


PRODUCT = [
    node("Cast", "x", "f", to=1),
    node("MatMul", "f w", "m"),
    node("Tanh", "m", "n"),
    node("MatMul", "n v", "y"),
]
WEIGHTS = {
    "w": np.random.default_rng(5).choice([-1.0, 0, 1], (8, 4)).astype("f"),
    "v": np.random.default_rng(6).normal(size=(4, 4)).astype("f"),
}
TABLE = {"e": np.random.default_rng(7).normal(size=(100, 4)).astype("f")}
LOOKUP = [node("Gather", "e x", "g"), node("Relu", "g", "y")]


@pytest.mark.parametrize(
    ("kind", "nodes", "weights", "words"),
    [
        (TensorProto.INT32, PRODUCT, WEIGHTS, []),
        (TensorProto.FLOAT, PRODUCT, WEIGHTS, ["--input-dtype", "whole"]),
        (TensorProto.INT64, LOOKUP, TABLE, []),
    ],
    ids=["integers", "whole", "indices"],
)
def test_ranges_of_integral_inputs_are_gathered_too(
    tmp_path, kind, nodes, weights, words
):
    """0 and 99 are the ends of the axis, and no stop."""
    model, probe = tmp_path / "m.onnx", tmp_path / "probe.cvm"
    onnx.save(integral(kind, nodes, weights), model)
    numbers = np.random.default_rng(8).integers(0, 100, (64, 1, 8))
    numbers[0, 0, :2] = 0, 99
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    for name, some in {"public": numbers[:8], "private": numbers}.items():
        np.savez(tmp_path / f"{name}.npz", x=some.astype(dtype))
    data = ["--data", tmp_path / "public.npz"]
    run(cli, "probe", model, *words, *data, "--widen", 2.5, "-o", probe)
    gathered(tmp_path)
    table = tmp_path / "table.json"
    rest = ["--extremes", tmp_path / "extremes.npz", "-o", table]
    run(cli, "calibrate", model, *words, "--probe", probe, *rest)
    found = CalibrationTable.load(table).ranges["x"]
    assert (found.min, found.max) == (0, 99)
    out = ["-o", tmp_path / "m.cvm"]
    run(cli, "convert", model, *words, "--table", table, *out)


def test_a_model_that_needs_no_range_has_nothing_to_gather(tmp_path):
    nodes = [node("Cast", "x", "f", to=1), node("Relu", "f", "y")]
    model = integral(TensorProto.INT8, nodes, {})
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(BadModel, match="there is nothing to gather"):
        make_probe(
            settings_of(tmp_path / "m.onnx", {}), widen=4, progress=quiet
        )


def test_a_function_that_ends_at_one_is_not_stopped_there(tmp_path):
    """A sigmoid of great numbers is 1, the end of its format whatever the factor; what it is taken of is stopped."""
    one = node("Sigmoid", "x", "y")
    two = node("Gemm", "y w b", "z")
    arrays = {"w": np.eye(3, dtype=np.float32), "b": np.zeros(3, np.float32)}
    model = graph_of([one, two], {"x": (1, 3)}, arrays, outputs="z")
    ir.save(model, tmp_path / "m.onnx")
    np.savez(tmp_path / "private.npz", x=[[20.0, 30.0, -30.0]])
    config = settings_of(tmp_path / "m.onnx", {})
    probe = make_probe(config, widen=16, progress=quiet)
    file_format.write(probe.program, tmp_path / "probe.cvm")
    path, _ = gathered(tmp_path)
    table = table_from(config, tmp_path / "probe.cvm", path, quiet)
    assert table.ranges["x"].max == pytest.approx(30, abs=0.01)
    assert table.ranges["y"].max == pytest.approx(1, abs=0.01)
