import json
from pathlib import Path

import pytest
from click.testing import Result

from cvm.file import format as file_format
from cvm.runtime import receipt
from tests.support.command import cvm, said
from tests.support.run_programs import (
    MEANINGS,
    chain,
    doubler,
    pair,
    save,
    save_array,
)

ROOT_1 = "1a61733574191b4c4fb6d751ca7942e87e88006eea81a6463b9c8b1f6ff3bfcd"
VERSION_1 = """{
 "cost_weights": 1,
 "format": "cvm-receipt-1",
 "program": "6b2c16c348d870cb3f40902e4187a3fdca5ee967286c882f3dd92356e540aa20",
 "root": "ROOT",
 "samples": [
  {
   "cost": 48,
   "inputs": {
    "x": "c0c500337f8288eb2fba3be8f5278c99d9933cdde74cbd55f514f5384bb37ea5"
   },
   "outputs": {
    "y": "439c707d1a0c5721ce2fd5b5fff636a68d8c49e841d44b907121a173142ea0b2"
   }
  }
 ]
}""".replace("ROOT", ROOT_1)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, so that messages hold short names."""
    monkeypatch.chdir(tmp_path)
    return Path()


@pytest.fixture
def recorded(here: Path) -> Path:
    """A program, two samples, their receipt and trace."""
    save(chain(MEANINGS), here)
    save_array([[1, 2, -3], [4, 5, 6]], here)
    files = ["--receipt", "r.json", "--trace", "t.json"]
    assert cvm("run", "p.cvm", "--input", "x.npy", *files).exit_code == 0
    return here


def replay(*options: object, program: str = "p.cvm") -> Result:
    return cvm("replay", program, "r.json", "--input", "x.npy", *options)


def changed(path: Path, *place: str | int) -> tuple[str, str]:
    """Flip the last bit of a digest in a JSON file; what it was and what it is."""
    content = json.loads(path.read_text())
    holder = content
    for key in place[:-1]:
        holder = holder[key]
    before = holder[place[-1]]
    holder[place[-1]] = (
        before[:-1] + "0123456789abcdef"[int(before[-1], 16) ^ 1]
    )
    path.write_text(json.dumps(content))
    return before, holder[place[-1]]


def mismatch(result: Result) -> list[str]:
    assert (result.exit_code, result.stderr) == (1, "")
    return result.stdout.splitlines()


@pytest.mark.parametrize(
    "options", [[], ["--trace", "t.json"], ["--threads", "3"], ["--checked"]]
)
def test_replay_matches(recorded: Path, options: list[str]) -> None:
    root = json.loads((recorded / "r.json").read_text())["root"]
    result = replay(*options)
    assert (result.exit_code, result.output) == (
        0,
        f"match: 2 samples, root {root}\n",
    )


def test_replay_names_the_output_whose_digest_was_changed(
    recorded: Path,
) -> None:
    before, after = changed(
        recorded / "r.json", "samples", 1, "outputs", "best"
    )
    assert mismatch(replay()) == [
        "no match: sample 1, output 'best'", f"  expected {after}", f"  found    {before}"
    ]  # fmt: skip


def test_replay_names_the_input_that_was_changed(recorded: Path) -> None:
    save_array([[1, 2, -3], [4, 5, 7]], recorded)
    assert mismatch(replay())[0] == "no match: sample 1, input 'x'"


def test_replay_names_an_input_before_it_runs_anything(recorded: Path) -> None:
    changed(recorded / "r.json", "samples", 0, "outputs", "y")
    changed(recorded / "r.json", "samples", 1, "inputs", "x")
    assert mismatch(replay())[0] == "no match: sample 1, input 'x'"


def test_replay_names_the_program_if_it_is_another(recorded: Path) -> None:
    save(doubler(), recorded, "other.cvm")
    assert mismatch(replay(program="other.cvm")) == [
        "no match: the program",
        f"  expected {file_format.program_id(chain())}",
        f"  found    {file_format.program_id(doubler())}",
    ]


def test_replay_names_the_number_of_samples(recorded: Path) -> None:
    save_array([[1, 2, -3]], recorded)
    assert mismatch(replay()) == [
        "no match: the number of samples",
        "  expected 2",
        "  found    1",
    ]


def test_replay_names_a_root_that_is_not_of_its_samples(recorded: Path) -> None:
    before, after = changed(recorded / "r.json", "root")
    assert mismatch(replay()) == [
        "no match: the root", f"  expected {after}", f"  found    {before}"
    ]  # fmt: skip


def test_replay_recomputes_trace_roots_without_the_trace(
    recorded: Path,
) -> None:
    changed(recorded / "r.json", "samples", 0, "trace")
    assert mismatch(replay())[0] == "no match: sample 0, root of the trace"


def test_replay_names_the_first_instruction_that_the_trace_has_otherwise(
    recorded: Path,
) -> None:
    changed(recorded / "t.json", "samples", 1, "digests", 2)
    before, after = changed(recorded / "t.json", "samples", 1, "digests", 0)
    assert mismatch(replay("--trace", "t.json")) == [
        "no match: sample 1, instruction 0 (%1 = add, sum_1) in the trace",
        f"  expected {after}",
        f"  found    {before}",
    ]


def test_replay_with_a_trace_names_the_instruction_before_the_output(
    recorded: Path,
) -> None:
    changed(recorded / "r.json", "samples", 0, "outputs", "y")
    changed(recorded / "t.json", "samples", 0, "digests", 1)
    assert mismatch(replay())[0] == "no match: sample 0, output 'y'"
    assert (
        mismatch(replay("--trace", "t.json"))[0]
        == "no match: sample 0, instruction 1 (%2 = clamp) in the trace"
    )


def test_replay_names_what_else_is_wrong_with_a_trace(recorded: Path) -> None:
    changed(recorded / "t.json", "samples", 0, "root")
    assert (
        mismatch(replay("--trace", "t.json"))[0]
        == "no match: sample 0, root in the trace"
    )
    changed(recorded / "t.json", "program")
    assert (
        mismatch(replay("--trace", "t.json"))[0]
        == "no match: the program of the trace"
    )


def test_replay_of_reals_compares_the_metadata(here: Path) -> None:
    save(doubler(metadata=MEANINGS), here)
    save_array([[0.5, 1.0, 1.5]], here, dtype="f8")
    assert (
        cvm(
            "run", "p.cvm", "--input", "x.npy", "--real", "--receipt", "r.json"
        ).exit_code
        == 0
    )
    stated = json.loads((here / "r.json").read_text())["metadata"]
    assert stated == file_format.metadata_digest(doubler(metadata=MEANINGS))
    assert replay("--real").exit_code == 0
    before, after = changed(here / "r.json", "metadata")
    assert mismatch(replay("--real")) == [
        "no match: the metadata",
        f"  expected {after}",
        f"  found    {before}",
    ]
    save_array([[1, 2, 3]], here)
    assert mismatch(replay())[0] == "no match: the metadata"
    changed(here / "r.json", "metadata")
    assert replay().exit_code == 0
    save(doubler(), here)
    assert mismatch(replay())[2] == "  found    none"


@pytest.mark.parametrize("key", ["metadata", "program", "cost_weights"])
def test_replay_names_the_root_if_the_header_is_not_what_it_was_made_of(
    here: Path, key: str
) -> None:
    """What was taken away changes the root, and a root that was published binds the program."""
    save(doubler(metadata=MEANINGS), here)
    save_array([[0.5, 1.0, 1.5]], here, dtype="f8")
    words = ("run", "p.cvm", "--input", "x.npy", "--real")
    assert cvm(*words, "--receipt", "r.json").exit_code == 0
    content = json.loads((here / "r.json").read_text())
    found = receipt.from_json(json.dumps(content).encode(), "r.json")
    assert found.root == found.true_root()
    if key == "metadata":
        del content[key]
    elif key == "program":
        content[key] = "0" * 64
    else:
        content[key] = 2
    (here / "r.json").write_text(json.dumps(content))
    found = receipt.from_json(json.dumps(content).encode(), "r.json")
    assert found.root != found.true_root()
    expected = {
        "metadata": "the root",
        "program": "the program",
        "cost_weights": "the version of the cost weights",
    }
    assert mismatch(replay("--real"))[0] == f"no match: {expected[key]}"


def test_replay_takes_a_receipt_of_version_1(here: Path) -> None:
    """As `cvm run` wrote it before version 2."""
    save(doubler(), here)
    save_array([[1, 2, -3]], here)
    (here / "r.json").write_text(VERSION_1)
    assert replay().output == f"match: 1 sample, root {ROOT_1}\n"
    (here / "r.json").write_text(
        VERSION_1.replace("cvm-receipt-1", "cvm-receipt-2")
    )
    assert mismatch(replay())[0] == "no match: the root"


def test_replay_refuses_nonsense(recorded: Path) -> None:
    (recorded / "r.json").write_text("{}")
    assert said(replay(), 2) == "r.json: lacks 'format'"
    (recorded / "r.json").unlink()
    assert said(replay(), 2) == "r.json: No such file or directory"
    (recorded / "r.json").mkdir()
    assert said(replay(), 2) == "r.json: Is a directory"


def test_trace_diff_says_same_or_names_the_first_difference(
    recorded: Path,
) -> None:
    (recorded / "u.json").write_text((recorded / "t.json").read_text())
    same = cvm("trace", "diff", "t.json", "u.json")
    assert (same.exit_code, same.output) == (0, "same: 2 samples\n")
    before, after = changed(recorded / "u.json", "samples", 1, "digests", 1)
    differs = cvm("trace", "diff", "t.json", "u.json")
    assert mismatch(differs) == [
        "differs: sample 1, instruction 1 (%2)",
        f"  t.json  {before}",
        f"  u.json  {after}",
    ]
    (recorded / "longer.json").write_bytes((recorded / "u.json").read_bytes())
    differs = cvm("trace", "diff", "t.json", "longer.json")
    assert mismatch(differs)[1:] == [
        f"  t.json       {before}",
        f"  longer.json  {after}",
    ]


def test_traces_of_two_inputs_part_where_the_values_do(recorded: Path) -> None:
    # sample 0: sums differ (2 4 -6 against 2 4 -8), clamped the same (2 4 -5)
    save_array([[1, 2, -4], [4, 5, 6]], recorded)
    assert (
        cvm("run", "p.cvm", "--input", "x.npy", "--trace", "u.json").exit_code
        == 0
    )
    one, other = (
        json.loads((recorded / name).read_text())["samples"]
        for name in ("t.json", "u.json")
    )
    assert one[0]["digests"][1:] == other[0]["digests"][1:]
    assert one[1] == other[1]
    assert (
        mismatch(cvm("trace", "diff", "t.json", "u.json"))[0]
        == "differs: sample 0, instruction 0 (%1)"
    )


def test_replay_names_what_it_does_not_compare(here: Path) -> None:
    """With integers, the count of clipped values; always, which back end it was."""
    save(doubler(metadata=MEANINGS), here)
    save_array([[0.5, 1.0, 1e9]], here, dtype="f8")
    words = ("run", "p.cvm", "--input", "x.npy", "--real")
    assert cvm(*words, "--receipt", "r.json").exit_code == 0
    (plain,) = replay("--real").stdout.splitlines()
    content = json.loads((here / "r.json").read_text())
    assert content["samples"][0]["clipped"] == 1
    content["backend"] = {
        "name": "spu",
        "version": "0.9.5",
        "protocol": "aby3",
        "error_probability": "0",
    }
    (here / "r.json").write_text(json.dumps(content))
    backend = "not compared: the back end (spu 0.9.5, aby3), which a replay does not run"  # fmt: skip
    assert replay("--real").stdout.splitlines() == [plain, backend]
    save_array([[1, 2, 1000]], here)
    clipped = "not compared: the clipped values, which only --real counts"
    assert replay().stdout.splitlines() == [plain, backend, clipped]
    answer = replay("--json")
    assert json.loads(answer.stdout)["match"] is True
    assert answer.stderr.splitlines() == [backend, clipped]


def test_replay_names_the_program_if_inputs_do_not_fit_another(
    here: Path,
) -> None:
    p, x = save(doubler(), here), save_array([[1, 2, 3]], here)
    assert cvm("run", p, "--input", x, "--receipt", "r.json").exit_code == 0
    other = save(pair(), here, "other.cvm")
    stated, own = (file_format.program_id(it) for it in (doubler(), pair()))
    note = (
        f"the receipt is of another program: {stated}, and other.cvm is {own}"
    )
    assert note in said(cvm("replay", other, "r.json", "--input", x), 2)
    absent = cvm("replay", p, "r.json", "--input", "none.npy")
    assert "another program" not in said(absent, 2)
