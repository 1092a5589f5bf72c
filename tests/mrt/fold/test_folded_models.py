"""Folding of whole models: unrolled networks and tree ensembles, from `mrt convert` and `mrt.convert`."""

import numpy as np
import onnx_ir as ir
import pytest
from click.testing import CliRunner

import cvm
import mrt
from cvm.file import format as file_format
from cvm.reference import interpreter
from cvm.runtime.backends import BackendOptions, open_backend
from mrt import stages
from mrt.cli import cli
from mrt.errors import NotProvable
from mrt.fold import Folded
from tests.mrt.fold.test_fold import require_equal
from tests.support.cvm_programs import random_inputs
from tests.support.graphs import graph_of, node
from tests.support.shared_data import SHARED, needs_shared
from tests.support.spu import needs_spu


def write_lstm(folder, steps):
    """An LSTM in both directions."""
    path = folder / "lstm.onnx"
    random = np.random.default_rng(1)
    shapes = {"w": (2, 24, 5), "r": (2, 24, 6), "b": (2, 48)}
    arrays = {
        name: random.normal(size=shape).astype(np.float32) / 2
        for name, shape in shapes.items()
    }
    one = node("LSTM", "x w r b", "y", hidden_size=6, direction="bidirectional")
    ir.save(graph_of([one], {"x": (steps, 1, 5)}, arrays), path)
    return path


@pytest.fixture(scope="module")
def unrolled(tmp_path_factory):
    """One of 12 steps."""
    return write_lstm(tmp_path_factory.mktemp("lstm"), 12)


def both(path, **options):
    """A model converted without and with folding, and the ratio of their instructions."""
    model = path and str(path)
    plain = mrt.convert(model, **options)
    folded = mrt.convert(model, fold=True, **options)
    counts = [
        len(made.program.program.instructions) for made in (plain, folded)
    ]
    require_equal(plain.conversion.proven, folded.conversion.proven, seeds=3)
    return plain, folded, counts


def test_an_unrolled_lstm_of_two_directions(unrolled):
    _, folded, counts = both(unrolled)
    assert counts == [679, 477]
    names = [item.name for item in folded.program.program.instructions]
    assert "conv2d" in names


def test_an_ensemble_of_trees():
    ensemble = pytest.importorskip("sklearn.ensemble")
    pytest.importorskip("skl2onnx")
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 8)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0) + (x[:, 2] > 0.5)
    forest = ensemble.RandomForestClassifier(30, max_depth=6, random_state=0)
    plain = mrt.convert(forest.fit(x, y), x)
    folded = mrt.convert(forest, x, fold=True)
    require_equal(plain.conversion.proven, folded.conversion.proven)
    before, after = (
        len(made.program.program.instructions) for made in (plain, folded)
    )
    assert after < before / 2
    assert (
        folded.conversion.summary()["instructions"]
        == f"{after}, folded from {before}"
    )


@needs_spu
@pytest.mark.slow
def test_parties_send_far_fewer_messages_for_a_folded_lstm(tmp_path):
    plain, folded, _ = both(write_lstm(tmp_path, steps=4))
    sends = []
    for made in (plain, folded):
        form = made.conversion.proven
        machine = open_backend("spu", BackendOptions("aby3"), form)
        sample = random_inputs(form.program, 1)
        found = machine.run(sample)
        np.testing.assert_array_equal(
            found["y"], interpreter.run(form, sample)["y"]
        )
        sends += machine.effort.sends
    assert sends[1] < 0.6 * sends[0]  # messages differ a little from run to run


@needs_shared
def test_a_boosted_ensemble_that_came_in_lanes_already():
    _, _, counts = both(SHARED / "onnx" / "ezkl_xgboost.onnx")
    assert counts == [100, 74]


@pytest.mark.slow
@needs_shared
def test_a_real_tagger_of_bytes(tmp_path):
    path = SHARED / "onnx" / "tract_byte_sb_bidi_lstm.onnx"
    config = tmp_path / "tagger.toml"
    config.write_text(
        f'[model]\npath = "{path}"\n[model.shapes]\ninput = [1, 12]\n'
    )
    _, _, counts = both(None, config=str(config))
    assert counts[1] < 0.75 * counts[0]


def test_the_command_prints_both_counts_and_the_file_says_that_it_is_folded(
    unrolled, tmp_path
):
    out = tmp_path / "folded.cvm"
    done = CliRunner().invoke(
        cli, ["convert", str(unrolled), "--fold", "-o", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert "477, folded from 679" in done.output
    assert file_format.read(out).provenance_of("fold") == "true"
    plain = tmp_path / "plain.cvm"
    CliRunner().invoke(cli, ["convert", str(unrolled), "-o", str(plain)])
    assert file_format.read(plain).provenance_of("fold") is None
    x = np.random.default_rng(2).integers(-128, 128, (3, 12, 1, 5))
    names = [item.name for item in cvm.load(out).program.outputs]
    for name in names:
        np.testing.assert_array_equal(
            cvm.load(out).run(x)[name], cvm.load(plain).run(x)[name]
        )


def test_a_table_serves_both(unrolled, tmp_path):
    """Folding decides nothing on samples."""
    plain = mrt.convert(str(unrolled))
    folded = mrt.convert(str(unrolled), table=plain.table, fold=True)
    assert folded.table == plain.table


def test_a_program_that_differs_is_never_written(
    unrolled, tmp_path, monkeypatch
):
    def wrong(form):
        """The same, but for one bias."""
        program = form.program
        constants = list(program.constants)
        place = next(i for i, a in enumerate(constants) if a.dtype == "int32")
        constants[place] = constants[place] + 7
        return Folded(_with(program, constants), {})

    def _with(program, constants):
        from dataclasses import replace

        return replace(program, constants=tuple(constants))

    monkeypatch.setattr(stages, "fold_program", wrong)
    with pytest.raises(NotProvable, match="differs: output 'y'"):
        mrt.convert(str(unrolled), fold=True)
