"""Whatever is changed in a receipt changes its root, and a replay finds it, whether the forger makes the root anew or not."""

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cvm.program import Meaning, Metadata
from tests.support.command import cvm
from tests.support.run_programs import chain, save, save_array

SCALES = Metadata(
    {"x": Meaning(0.5, 0)}, {"y": Meaning(0.25, 1), "best": Meaning(1.0, 0)}
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program, two samples of real values, their receipt and trace."""
    folder = tmp_path_factory.mktemp("recorded")
    program = save(chain(SCALES), folder)
    x = save_array([[0.5, 1, -1.5], [4, 5, 6]], folder, dtype="f8")
    words = ["run", program, "--input", x, "--real"]
    files = ["--receipt", folder / "r.json", "--trace", folder / "t.json"]
    assert cvm(*words, *files).exit_code == 0
    return folder


def replay(folder: Path, content: Any, *options: object) -> Result:
    (folder / "forged.json").write_text(json.dumps(content))
    words = ("replay", folder / "p.cvm", folder / "forged.json")
    return cvm(*words, "--input", folder / "x.npy", "--real", *options)


def root_of(content: dict[str, Any]) -> str:
    """By the split of RFC 6962 into the largest power of two and the rest, not by pairs."""

    def tree(leaves: list[bytes]) -> bytes:
        if len(leaves) == 1:
            return hashlib.sha256(b"\0" + leaves[0]).digest()
        left = 1 << (len(leaves) - 1).bit_length() - 1
        halves = tree(leaves[:left]) + tree(leaves[left:])
        return hashlib.sha256(b"\1" + halves).digest()

    samples = content["samples"]
    header = {key: content[key] for key in content if key != "root"}
    leaves = [{**header, "samples": len(samples)}, *samples]
    compact = [
        json.dumps(leaf, sort_keys=True, separators=(",", ":"))
        for leaf in leaves
    ]
    return tree([leaf.encode() for leaf in compact]).hex()


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every digest, number and text stands."""
    if isinstance(node, dict | list):
        pairs = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in pairs:
            yield from places(value, (*path, key))
    else:
        yield path


def changed(content: Any, path: tuple[Any, ...]) -> Any:
    """A copy with another digest, number or text at one place."""
    forged = copy.deepcopy(content)
    node = forged
    for key in path[:-1]:
        node = node[key]
    value = node[path[-1]]
    node[path[-1]] = (
        value + 1
        if isinstance(value, int)
        else ("0" if value[0] != "0" else "1") + value[1:]
    )
    return forged


def test_the_receipt_itself_matches(recorded: Path) -> None:
    content = json.loads((recorded / "r.json").read_text())
    assert content["root"] == root_of(content)
    assert replay(recorded, content).exit_code == 0
    trace = ("--trace", recorded / "t.json")
    assert replay(recorded, content, *trace).exit_code == 0


@pytest.mark.parametrize("rooted", [False, True])
def test_no_digest_number_or_text_can_be_another(
    recorded: Path, rooted: bool
) -> None:
    content = json.loads((recorded / "r.json").read_text())
    found = [*places(content)]
    assert len(found) == 5 + 2 * 6
    for path in found:
        forged = changed(content, path)
        if rooted and path not in (("root",), ("format",)):
            forged["root"] = root_of(forged)
            assert forged["root"] != content["root"]
        expected = 2 if path == ("format",) else 1
        assert replay(recorded, forged).exit_code == expected, path


def _without(*keys: str) -> Callable[[Any], None]:
    def change(content: Any) -> None:
        for sample in content["samples"]:
            for key in keys:
                sample.pop(key)

    return change


STRUCTURES: dict[str, tuple[Callable[[Any], object], int]] = {
    "in another order": (lambda c: c["samples"].reverse(), 1),
    "one sample more": (lambda c: c["samples"].append(c["samples"][0]), 1),
    "one sample less": (lambda c: c["samples"].pop(), 1),
    "no samples": (lambda c: c["samples"].clear(), 1),
    "an output more": (
        lambda c: c["samples"][0]["outputs"].update(more="0" * 64),
        1,
    ),
    "an output less": (lambda c: c["samples"][0]["outputs"].pop("best"), 1),
    "an input less": (lambda c: c["samples"][0]["inputs"].pop("x"), 1),
    "one count of clipped values less": (
        lambda c: c["samples"][0].pop("clipped"),
        2,
    ),
    "one trace less": (lambda c: c["samples"][0].pop("trace"), 2),
    "no costs": (_without("cost"), 2),
    "an unknown key": (lambda c: c.update(x=1), 2),
    "a number for true": (lambda c: c.update(cost_weights=True), 2),
    "a fraction": (lambda c: c["samples"][0].update(cost=1.0), 2),
    "capitals": (lambda c: c.update(program=c["program"].upper()), 2),
    "another version": (lambda c: c.update(format="cvm-receipt-3"), 2),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_nothing_can_be_added_taken_away_or_moved(
    recorded: Path, name: str
) -> None:
    forge, code = STRUCTURES[name]
    content = json.loads((recorded / "r.json").read_text())
    forged = copy.deepcopy(content)
    forge(forged)
    assert replay(recorded, forged).exit_code == code
    forged["root"] = root_of(forged)
    assert forged["root"] != content["root"]
    assert replay(recorded, forged).exit_code == code


@pytest.mark.parametrize(
    "forge", [lambda c: c.pop("metadata"), _without("trace")]
)
def test_what_another_run_might_have_left_out_changes_the_root(
    recorded: Path, forge: Callable[[Any], None]
) -> None:
    """A run of integers has no metadata and one that is not traced no traces: such a receipt is right under its own root."""
    content = json.loads((recorded / "r.json").read_text())
    published = content["root"]
    forge(content)
    result = replay(recorded, content)
    assert result.stdout.startswith("no match: the root\n")
    content["root"] = root_of(content)
    assert content["root"] != published
    assert replay(recorded, content).exit_code == 0


def test_a_receipt_of_version_2_cannot_pass_for_one_of_version_1(
    recorded: Path,
) -> None:
    content = json.loads((recorded / "r.json").read_text())
    content["format"] = "cvm-receipt-1"
    result = replay(recorded, content)
    assert result.exit_code == 2
    assert "samples[0] has the unknown key 'clipped'" in result.stderr
    for sample in content["samples"]:
        del sample["clipped"]
    result = replay(recorded, content)
    assert result.stdout.startswith("no match: the root\n")


def test_a_trace_that_was_changed_does_not_match(recorded: Path) -> None:
    content = json.loads((recorded / "r.json").read_text())
    trace = json.loads((recorded / "t.json").read_text())
    for path in places(trace):
        forged = recorded / "forged_trace.json"
        forged.write_text(json.dumps(changed(trace, path)))
        expected = 2 if path == ("format",) else 1
        result = replay(recorded, content, "--trace", forged)
        assert result.exit_code == expected, path
