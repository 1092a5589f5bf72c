"""Greedy generation: a decoder small enough to follow by hand, its receipt, and what is refused."""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import cvm
from cvm.errors import BadInput, Trap
from cvm.file import format as file_format
from cvm.program import Meaning, Program
from cvm.program.decoder import mask_at, position_at, usual_states
from cvm.proof.validate import validate
from cvm.runtime import native
from cvm.runtime import receipt as receipts
from cvm.runtime.decoder import Decoder
from cvm.runtime.generation import steps
from cvm.runtime.machine import Reference
from tests.support.command import cvm as command
from tests.support.command import said
from tests.support.run_programs import chain, decoder

NUMBERS = "expected numbers with commas between them, such as 1,2,3"
STEPS = "--replay runs the steps that the receipt has"
BACKEND = {"name": "spu", "version": "1", "protocol": "aby3", "error_probability": "0"}  # fmt: skip
ENGINES = ["reference", *(["native"] if native.available() else [])]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder with the decoder in it."""
    monkeypatch.chdir(tmp_path)
    file_format.write(decoder(), "p.cvm")
    return Path()


def load(program: Program, folder: Path, engine: str = "auto"):
    file_format.write(program, folder / "p.cvm")
    return cvm.load(folder / "p.cvm", engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("prompt", "tokens"),
    [
        ([0], (1, 0, 0, 0)),  # after 1 the lower of two equals
        ([0, 1, 1], (2, 3, 3, 3)),  # states 0, 1, 2, then min(2 + 2, 3)
        ([2], (2, 3, 3, 3)),
    ],
)
def test_the_greatest_logit_is_next_and_the_lowest_of_equals(
    tmp_path: Path, engine: str, prompt: list[int], tokens: tuple[int, ...]
) -> None:
    made = load(decoder(), tmp_path, engine).generate(prompt, 4)
    assert (made.prompt, made.tokens) == (tuple(prompt), tokens)
    assert made.receipt is None


def test_tokens_are_integers(tmp_path: Path) -> None:
    program = load(decoder(), tmp_path)
    with pytest.raises(
        BadInput,
        match=r"^token 1\.5 at place 0 of the prompt: expected an integer",
    ):
        program.generate([1.5], 1)  # type: ignore[list-item]
    assert program.generate([np.int64(2)], 1).tokens == (2,)


def test_a_stop_token_ends_the_generation(tmp_path: Path) -> None:
    program = load(decoder(), tmp_path)
    assert program.generate([2], 4, stop=3).tokens == (2, 3)
    assert program.generate([3], 4, stop=3).tokens == (3,)  # not in the prompt


def test_the_states_begin_with_the_integer_of_0(tmp_path: Path) -> None:
    meanings = {"past": Meaning(0.5, 2)}, {"present": Meaning(0.5, 2)}
    program = decoder()
    assert program.metadata is not None
    inputs, outputs = meanings
    shifted = replace(program.metadata, inputs=inputs, outputs=outputs)
    moved = load(replace(program, metadata=shifted), tmp_path)
    assert moved.generate([0], 1).tokens == (2,)  # the row of 2, not of 0


def test_a_receipt_has_a_sample_for_each_step_and_the_states_chain(
    tmp_path: Path,
) -> None:
    program = load(decoder(), tmp_path)
    receipt = program.generate([0, 1, 1], 4, receipt=True).receipt
    assert receipt is not None and len(receipt.samples) == 6
    assert receipt.metadata == file_format.metadata_digest(program.program)
    for one, next_one in zip(
        receipt.samples, receipt.samples[1:], strict=False
    ):
        assert one.outputs["present"] == next_one.inputs["past"]
    arrays = {
        "token": np.array([0, 1, 1, 2, 3, 3]).reshape(6, 1, 1),
        "past": np.array([0, 0, 1, 2, 3, 3]).reshape(6, 1, 1),
    }
    assert program.replay(receipt, arrays) is None  # an ordinary receipt


def test_the_command_writes_prints_and_replays(here: Path) -> None:
    given = ("--prompt-tokens", "0,1,1", "--n", "4")
    result = command("generate", "p.cvm", *given, "--receipt", "r.json")
    assert result.stdout == "2,3,3,3\nwrote r.json\n"
    result = command("generate", "p.cvm", *given, "-o", "t.npz", "--json")
    facts = json.loads(result.stdout)
    assert facts["tokens"] == [2, 3, 3, 3] and facts["written"] == ["t.npz"]
    with np.load("t.npz") as arrays:
        assert arrays["prompt"].tolist() == [0, 1, 1]
        assert arrays["tokens"].tolist() == [2, 3, 3, 3]
    again = ("generate", "p.cvm", "--prompt-tokens", "0,1,1", "--replay")
    root = json.loads(Path("r.json").read_text())["root"]
    assert (
        command(*again, "r.json").stdout == f"match: 6 samples, root {root}\n"
    )


@pytest.mark.parametrize(
    ("extra", "count"), [("position_ids", 5), ("", 64)], ids=["room", "endless"]
)
def test_unless_said_as_many_tokens_come_as_there_is_room_for(
    here: Path, extra: str, count: int
) -> None:
    """Positions 0..5 are six tokens, two of which the prompt takes."""
    program = decoder(extra=extra) if extra else decoder()
    load(program, here)
    (path,) = here.glob("*.cvm")
    result = command("generate", path.name, "--prompt-tokens", "0,0")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.split(",")) == count
    if extra:
        words = ("generate", path.name, "--prompt-tokens", "0,0,0,0,0,0,0")
        assert "the prompt has 7 tokens" in said(command(*words), 2)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda r: r["samples"].pop(), "no match: the root"),
        (lambda r: r["samples"][4:].clear() or r["samples"].__delitem__(slice(2, None)), "no match: the number of samples"),
        (lambda r: r["samples"][3]["outputs"].update(logits="0" * 64), "no match: sample 3, output 'logits'"),
        (lambda r: r["samples"][2]["inputs"].update(past="0" * 64), "no match: sample 2, input 'past'"),
        (lambda r: r.update(metadata="0" * 64), "no match: the metadata"),
        (lambda r: r.pop("metadata"), "no match: the metadata"),
        (lambda r: r.update(format="cvm-receipt-1"), "no match: the version of the receipt"),
        (lambda r: r.update(backend=BACKEND), "no match: the back end"),
        (lambda r: [s.update(trace="0" * 64) for s in r["samples"]], "no match: sample 0, root of the trace"),
        (lambda r: [s.update(clipped=0) for s in r["samples"]], "no match: sample 0, number of clipped values"),
    ],
)  # fmt: skip
def test_a_changed_receipt_is_found(here: Path, change, what: str) -> None:
    given = ("generate", "p.cvm", "--prompt-tokens", "0,1,1")
    assert command(*given, "--n", "4", "--receipt", "r.json").exit_code == 0
    content = json.loads(Path("r.json").read_text())
    change(content)
    Path("r.json").write_text(json.dumps(content))
    if what != "no match: the root":  # a forger has the true root, too
        forged = receipts.load(Path("r.json"))
        replace(forged, root=forged.true_root()).save("r.json")
    result = command(*given, "--replay", "r.json")
    assert result.exit_code == 1
    assert result.stdout.startswith(what)


def test_a_receipt_does_not_say_where_the_prompt_ends(here: Path) -> None:
    """After 0,1,1 the program chooses 2: as a prompt, 0,1,1,2 has the same steps."""
    given = ("generate", "p.cvm", "--prompt-tokens")
    command(*given, "0,1,1", "--n", "4", "--receipt", "r.json")
    result = command(*given, "0,1,1,2", "--replay", "r.json")
    assert (result.exit_code, result.stdout[:16]) == (0, "match: 6 samples")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--prompt-tokens", "0,4"), "token 4 at place 1 of the prompt: the program's tokens are 0..3"),
        (("--prompt-tokens", "0,x"), f"--prompt-tokens '0,x': {NUMBERS}"),
        (("--prompt-tokens", "1_0"), f"--prompt-tokens '1_0': {NUMBERS}"),
        (("--prompt-tokens", "0, 1"), f"--prompt-tokens '0, 1': {NUMBERS}"),
        (("--prompt-tokens", "\uff11"), f"--prompt-tokens '\uff11': {NUMBERS}"),
        (("--prompt-tokens", "-1"), f"--prompt-tokens '-1': {NUMBERS}"),
        (("--prompt-tokens", "1\n"), f"--prompt-tokens '1\\n': {NUMBERS}"),
        (("--prompt-tokens", "1" * 5000), f"--prompt-tokens '{'1' * 76}...: {NUMBERS}"),
        (("--prompt-tokens", "9999999999"), "token 9999999999 at place 0 of the prompt: the program's tokens are 0..3"),
        (("--prompt-tokens", "0", "--position", "token"), "input 'token' cannot be token and position at once"),
        (("--prompt-tokens", "0", "--logits", "y"), "--logits y: the program has logits, present"),
        (("--prompt-tokens", "0", "--replay", "p.cvm", "-o", "t.npz"), "--replay compares and writes nothing: leave t.npz away"),
        (("--prompt-tokens", "0", "--replay", "p.cvm", "--n", "64"), f"{STEPS}: leave --n away"),
        (("--prompt-tokens", "0", "--replay", "p.cvm", "--stop-token", "0"), f"{STEPS}: leave --stop-token away"),
    ],
)  # fmt: skip
def test_what_cannot_be_generated_is_refused(
    here: Path, options: tuple[str, ...], sentence: str
) -> None:
    assert said(command("generate", "p.cvm", *options), 2) == sentence
    assert not Path("t.npz").exists()


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        (chain(), "the program names no states, so a step cannot follow another"),
        (decoder(states=False), "the program names no states"),
        (decoder(high=2), "state 'past' = 'present': goes out within 0..3 and is taken within 0..2"),
        (replace(decoder(), outputs=decoder().outputs[:1]), "state 'present': the program has no output of this name"),
    ],
)  # fmt: skip
def test_a_program_that_is_no_decoder_is_refused(
    tmp_path: Path, program: Program, sentence: str
) -> None:
    with pytest.raises(BadInput, match=f"^{sentence}"):
        load(program, tmp_path).generate([0], 1)


def test_states_of_two_meanings_are_refused(tmp_path: Path) -> None:
    program = decoder()
    assert program.metadata is not None
    other = replace(program.metadata, outputs={"present": Meaning(0.25, 0)})
    with pytest.raises(
        BadInput,
        match=r"has scale 0\.25 and zero point 0 going out, 0\.5 and 0",
    ):
        load(replace(program, metadata=other), tmp_path).generate([0], 1)


def test_an_input_that_nothing_fills_is_named(tmp_path: Path) -> None:
    program = load(decoder(extra="strange"), tmp_path)
    with pytest.raises(BadInput, match="input 'strange' has no role at a step"):
        program.generate([0], 1)
    assert program.generate([0], 3, position="strange").tokens == (1, 0, 0)


def test_positions_and_masks_say_how_many_tokens_can_be_read(
    tmp_path: Path,
) -> None:
    """Positions 0..5 are six tokens; a mask of one place is one."""
    program = load(decoder(extra="position_ids"), tmp_path)
    assert program.generate([0, 0], 5).tokens == (1, 0, 0, 0, 0)
    with pytest.raises(BadInput, match=r"reads at most 6; .* generate 5$"):
        program.generate([0, 0], 6)
    with pytest.raises(
        BadInput, match="has 7 tokens; the program has room for 6"
    ):
        program.generate([0] * 7, 1)
    with pytest.raises(BadInput, match="the prompt has no token"):
        program.generate([], 2)
    masked = load(decoder(extra="attention_mask"), tmp_path)
    with pytest.raises(BadInput, match="reads at most 1"):
        masked.generate([0], 2)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("name", "places", "within", "missing"),
    [
        ("position", 1, (1, 4), "0, the first position"),
        ("position", 1, (-3, -1), "0, the first position"),
        ("mask", 1, (2, 5), "1, for a place in use"),
        ("mask", 3, (-2, 0), "1, for a place in use"),
        ("mask", 3, (1, 1), "0, for a place that is not in use"),
    ],
)
def test_an_interval_that_lacks_what_a_step_holds_is_refused(
    tmp_path: Path,
    engine: str,
    name: str,
    places: int,
    within: tuple[int, int],
    missing: str,
) -> None:
    """Nothing outside an interval may run: the proof does not speak of it."""
    program = decoder(extra=name, within=within, places=places)
    with pytest.raises(BadInput) as caught:
        load(program, tmp_path, engine).generate([0], 1)
    assert str(caught.value) == (
        f"input '{name}' takes {within[0]}..{within[1]}: as the {name} of a decoder it must take {missing}"
    )


@pytest.mark.parametrize(
    ("name", "places", "within", "count"),
    [
        ("position", 1, (-1, 2), 3),
        ("mask", 1, (1, 1), 1),  # its only place is always in use
        ("mask", 3, (0, 1), 3),
    ],
)
def test_an_interval_that_just_holds_every_step_is_taken(
    tmp_path: Path, name: str, places: int, within: tuple[int, int], count: int
) -> None:
    program = decoder(extra=name, within=within, places=places)
    made = load(program, tmp_path, "reference").generate([0], count)
    assert made.tokens == (1, 0, 0)[:count]


def test_an_input_with_the_name_of_the_logits_is_an_input(
    tmp_path: Path,
) -> None:
    program = load(decoder(extra="logits"), tmp_path)
    with pytest.raises(BadInput, match="input 'logits' has no role at a step"):
        program.generate([0], 1)
    assert program.generate([0], 2, position="logits").tokens == (1, 0)


def test_a_role_that_there_is_not_is_refused(tmp_path: Path) -> None:
    program = load(decoder(extra="strange"), tmp_path)
    with pytest.raises(BadInput) as caught:
        program.generate([0], 1, postion="strange")
    assert str(caught.value) == (
        "'postion' is no role: the roles are token, position, mask, logits"
    )


def test_a_token_below_0_is_none(tmp_path: Path) -> None:
    program = decoder()
    token, past = program.inputs
    wider = replace(program, inputs=(replace(token, lo=-1), past))
    with pytest.raises(BadInput, match=r"token -1 .* tokens are 0\.\.3$"):
        load(wider, tmp_path).generate([-1], 1)


def test_a_trap_names_its_step() -> None:
    """A proven program has none; a machine may yet be broken."""

    class Broken(Reference):
        def run(self, sample, **options):
            if sample["token"] == 2:
                raise Trap("it broke")
            return super().run(sample, **options)

    proven = validate(decoder())
    run = steps(Decoder.of(proven, {}), Broken(proven), [0, 1, 1])
    with pytest.raises(Trap, match=r"^sample 3: it broke$"):
        list(islice(run, 4))


def test_a_mask_marks_the_last_places() -> None:
    assert mask_at(0, (1, 3)).tolist() == [[0, 0, 1]]
    assert mask_at(1, (1, 3)).tolist() == [[0, 1, 1]]
    assert mask_at(7, (1, 3)).tolist() == [[1, 1, 1]]
    assert position_at(7, (1, 1)).tolist() == [[7]]


def test_usual_names_of_states_are_found() -> None:
    inputs = ["input_ids", "past_key_values.0.key", "past.1.value", "past_x"]
    outputs = ["logits", "present.0.key", "present.1.value", "present_x"]
    assert usual_states(inputs, outputs) == {
        "past_key_values.0.key": "present.0.key",
        "past.1.value": "present.1.value",
        "past_x": "present_x",
    }
