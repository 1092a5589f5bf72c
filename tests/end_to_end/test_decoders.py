"""Decoders from ONNX to tokens: states are tied, and every machine generates the same."""

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import cvm
import mrt
import mrt.cli
from benchmarks.decoder_models import Shape, llama, nanogpt, random_weights
from cvm.program.decoder import states_of
from cvm.runtime import native
from tests.support.graphs import run

SHAPE = Shape(width=24, heads=4, groups=2, layers=2, hidden=48, length=16)
MAKERS = {"nanogpt": nanogpt, "llama": llama}
COUNT = 12


def convert(model, path, *options):
    """The program of a model, calibrated on sequences of random tokens."""
    onnx.save(model, path / "model.onnx")
    rng = np.random.default_rng(5)
    tokens = rng.integers(0, SHAPE.vocabulary, (6, SHAPE.length))
    np.savez(path / "tokens.npz", tokens=tokens)
    files = [path / "model.onnx", "--data", path / "tokens.npz"]
    words = ["convert", *files, *options, "-o", path / "model.cvm"]
    result = CliRunner().invoke(mrt.cli.cli, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return path / "model.cvm"


@pytest.fixture(scope="module", params=MAKERS)
def made(request, tmp_path_factory):
    """A decoder in float, and its program."""
    weights = random_weights(SHAPE, gated=request.param == "llama")
    model = MAKERS[request.param](SHAPE, weights)
    return model, convert(model, tmp_path_factory.mktemp(request.param))


def test_states_are_found_by_name_and_pass_without_a_rescale(made):
    _, path = made
    program = cvm.load(path)
    states = states_of(program.program)
    assert len(states) == 2 * SHAPE.layers
    inputs = {port.name: port for port in program.inputs}
    outputs = {port.name: port for port in program.outputs}
    for name, output in states.items():
        one, other = inputs[name], outputs[output]
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert (one.scale, one.zero_point) == (other.scale, other.zero_point)
        assert one.dtype == "i8"  # products alone read it


def test_a_cache_that_loses_a_place_is_said(made):
    model, path = made
    data = path.with_name("tokens.npz")
    converted = mrt.convert(path.with_name("model.onnx"), data, bits=8)
    notes = converted.conversion.remarks.notes
    of_file = {
        it.name: tuple(dim.dim_value for dim in it.type.tensor_type.shape.dim)
        for it in model.graph.output
    }
    of_program = {port.name: port.shape for port in cvm.load(path).outputs}
    is_said = any("without the oldest place" in note for note in notes)
    assert is_said == (of_file != of_program)


def test_what_is_in_the_cache_stays_as_it_is(made):
    """Places other than the new token's: the same, or moved by one."""
    _, path = made
    program = cvm.load(path)
    rng = np.random.default_rng(1)
    sample = {
        port.name: rng.integers(*port.interval, port.shape, endpoint=True)
        for port in program.inputs
    }
    answers = program.run(sample)
    for name, output in states_of(program.program).items():
        before, after = sample[name], answers[output]
        if "position" in sample:
            place = int(sample["position"].reshape(()))
            before = np.delete(before, place, 2)
            after = np.delete(after, place, 2)
        else:
            before, after = before[:, :, 1:], after[:, :, :-1]
        assert (before == after).all()


@pytest.mark.skipif(not native.available(), reason="the engine was not built")
@pytest.mark.parametrize("threads", [1, 3])
def test_every_machine_generates_the_same_tokens(made, monkeypatch, threads):
    _, path = made
    prompt = [3, 1, 4]
    law = cvm.load(path, engine="reference").generate(
        prompt, COUNT, receipt=True
    )
    assert len(set(law.tokens)) > 1
    for isa in native.isas():
        monkeypatch.setenv("CVM_ISA", isa)
        program = cvm.load(path, engine="native")
        found = program.generate(prompt, COUNT, receipt=True, threads=threads)
        assert found == law, isa


def test_the_tokens_are_those_of_the_float_model(made):
    """The model of random weights chooses by small margins; from its own states it chooses the same."""
    model, path = made
    program = cvm.load(path)
    rng = np.random.default_rng(8)
    same = []
    for _ in range(4):
        tokens = rng.integers(0, SHAPE.vocabulary, SHAPE.length).tolist()
        same += [
            program.generate(tokens[:n], 1).tokens[0] == chosen
            for n, chosen in enumerate(float_choices(model, tokens), 1)
        ]
    assert sum(same) / len(same) > 0.9, sum(same) / len(same)


def float_choices(model, tokens):
    """After each token, the next one that the float model chooses."""
    inputs = {
        item.name: [d.dim_value for d in item.type.tensor_type.shape.dim]
        for item in model.graph.input
    }
    states = {
        name: np.zeros(shape, np.float32)
        for name, shape in inputs.items()
        if name.startswith("past")
    }
    for step, token in enumerate(tokens):
        mask = np.zeros((1, SHAPE.length), np.int64)
        mask[:, SHAPE.length - step - 1 :] = 1
        given = {"attention_mask": mask}
        given |= dict.fromkeys(("token", "input_ids"), np.array([[token]]))
        given |= dict.fromkeys(("position", "position_ids"), np.array([[step]]))
        answers = run(model, {**states, **given})
        yield int(answers["logits"].argmax())
        for name, state in states.items():
            present = name.replace("past_key_values", "past")
            full = answers[present.replace("past", "present")]
            states[name] = full[:, :, full.shape[2] - state.shape[2] :]


def test_states_of_other_names_are_given(tmp_path):
    model = nanogpt(SHAPE, random_weights(SHAPE, gated=False))
    names = {}
    for item in (*model.graph.input, *model.graph.output):
        if "." in item.name:
            names[item.name] = item.name.replace("p", "q", 1)
            item.name = names[item.name]
    for item in model.graph.node:
        for place in (item.input, item.output):
            place[:] = [names.get(name, name) for name in place]
    pairs = [
        f"qast.{layer}.{role}=qresent.{layer}.{role}"
        for layer in range(SHAPE.layers)
        for role in ("key", "value")
    ]
    options = [word for pair in pairs for word in ("--state", pair)]
    program = cvm.load(convert(model, tmp_path, *options))
    assert states_of(program.program) == dict(pair.split("=") for pair in pairs)
    assert len(program.generate([1, 2], 5).tokens) == 5
