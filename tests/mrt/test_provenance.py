"""What a program records of its origin."""

import json

import numpy as np
import pytest
import tomlkit

import mrt
from cvm.program.limits import MAX_TEXT_BYTES
from mrt.provenance import CHOSEN, LAYERS
from tests.support.float_models import FloatModel

SUMS = 300


@pytest.fixture(scope="module")
def sums():
    """A model of many sums on one stream, whose names together are longer than an entry may be."""
    model = FloatModel(x=(1, 4))
    first = total = model.add("Relu", "x", name="first")
    for number in range(SUMS):
        name = f"sum_{number:_>200}"
        total = model.add("Add", total, first, name=name)
    return model.proto(total)


@pytest.fixture
def origin(sums, tmp_path):
    """Return the provenance of a program of the model, made with these layers in the config and these options."""

    def made(layers, **options):
        config = tmp_path / "sums.toml"
        config.write_text(tomlkit.dumps({"layers": layers}))
        samples = np.random.default_rng(3).normal(size=(8, 4))
        converted = mrt.convert(
            sums, samples, config=config, refine="none", **options
        )
        return converted.conversion.proven.program.metadata.provenance

    return made


def test_layers_are_recorded_whole_where_they_fit(origin):
    found = origin({"first": {"activation_bits": 16}})
    assert json.loads(found[LAYERS])["first"]["activation_bits"] == 16
    assert CHOSEN not in found


def test_an_option_for_too_many_layers_is_recorded_as_it_was_written(origin):
    found = origin({"first": {"activation_bits": 8}}, stream_bits=16)
    assert found["stream_bits"] == "16"
    assert list(json.loads(found[LAYERS])) == ["first"]
    kind, digest, of, size, unit = found[CHOSEN].split()
    assert (kind, of, unit, len(digest)) == ("sha256", "of", "bytes", 64)
    assert int(size) > MAX_TEXT_BYTES


def test_too_many_layers_that_were_written_leave_their_digest(origin, sums):
    written = {
        node.output[0]: {"activation_bits": 16} for node in sums.graph.node
    }
    found = origin(written)
    assert found[LAYERS].startswith("sha256 ")
    assert found[LAYERS] == found[CHOSEN]
    other = {**written, "first": {"activation_bits": 8}}
    assert origin(other)[LAYERS] != found[LAYERS]
