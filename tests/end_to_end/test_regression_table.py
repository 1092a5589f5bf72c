"""The state of every real model at hand is what tests/regression/models.json says; and that it can tell."""

import json
from pathlib import Path

import pytest

from cvm.runtime import native
from mrt.config import load_config
from tests.regression import table
from tests.regression.cases import SUFFIXES, cases
from tests.regression.memory import TOO_MUCH, class_of
from tests.regression.run import states_of
from tests.support.shared_data import needs_shared

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
ROW = {
    "8 bits": 27.7,
    "time": "under 2 s",
    "memory": "under 512 MB",
    "same class": "198 of 200",
    "16 bits": 39.1,
    "bytes": 40_000,
    "% of float": 25.0,
}
MOST_OF_FLOAT = 30.0
LARGER = {
    # Of 22,016 weights, which are 24 %, in 640 channels: a bias, a multiplier and a shift are 9 bytes of each, 6 % of the file,
    # whose own channels have 4; 1 kB of points, 1.6 kB of header and metadata.
    "onnx/mlperftiny_dscnn_kws_fp32": 33.5,
}


def verdicts(**changes):
    names = {
        "eight": "8 bits",
        "sixteen": "16 bits",
        "same": "same class",
        "time": "time",
        "memory": "memory",
        "size": "bytes",
        "share": "% of float",
    }
    return table.differences(
        {"net": ROW},
        {
            "net": {
                **ROW,
                **{names[key]: value for key, value in changes.items()},
            }
        },
    )


@pytest.mark.slow
@needs_shared
@pytest.mark.skipif(
    not native.available(), reason="without the engine this takes too long"
)
def test_no_model_is_worse_or_much_better_than_written_down():
    found = dict(states_of(cases()))
    assert table.differences(table.load(), found) == [], (
        "python -m tests.regression shows them, --update writes them down"
    )


def test_what_moves_within_the_tolerance_is_the_same():
    assert (
        verdicts(eight=27.2, same="197 of 200", time="under 8 s", sixteen=41.1)
        == []
    )


def test_a_figure_that_got_worse_is_named_with_its_model():
    assert verdicts(eight=27.1) == [
        "net: 8 bits got worse: 27.7 is written down, found 27.1"
    ]
    assert verdicts(same="196 of 200") == [
        "net: same class got worse: 198 of 200 is written down, found 196 of 200"
    ]
    assert verdicts(time="under 32 s") == [
        "net: time got slower: under 2 s is written down, found under 32 s"
    ]


def test_a_figure_that_got_much_better_must_be_written_down():
    assert verdicts(sixteen=41.2) == [
        "net: 16 bits got better: 39.1 is written down, found 41.2"
    ]
    assert verdicts(sixteen="exact") == [
        "net: 16 bits got better: 39.1 is written down, found exact"
    ]
    assert table.differences(
        {"net": {**ROW, "same class": "190 of 200"}}, {"net": ROW}
    ) == [
        "net: same class got better: 190 of 200 is written down, found 198 of 200"
    ]


def test_a_model_that_no_longer_converts_or_now_does_is_named():
    refused = "refused: n (Einsum): unsupported"
    assert verdicts(eight=refused) == [
        f"net: 8 bits no longer converts: 27.7 is written down, found {refused}"
    ]
    assert table.differences(
        {"net": {"8 bits": refused}}, {"net": {"8 bits": 30.0}}
    ) == [f"net: 8 bits changed: {refused} is written down, found 30.0"]
    assert table.differences({}, {"net": ROW}) == ["net: not written down yet"]


def test_memory_may_grow_by_one_class_and_shrink_by_three():
    assert verdicts(memory="under 640 MB") == []
    assert verdicts(memory="under 128 MB") == []
    assert verdicts(memory="under 768 MB") == [
        "net: memory grew: under 512 MB is written down, found under 768 MB"
    ]
    large = {"net": {**ROW, "memory": "under 768 MB"}}
    assert table.differences(
        large, {"net": {**ROW, "memory": "under 256 MB"}}
    ) == [
        "net: memory shrank: under 768 MB is written down, found under 256 MB"
    ]


def test_no_memory_beyond_the_bound_passes():
    assert verdicts(memory="under 512 MB, too much") == [
        "net: memory changed: under 512 MB is written down, found under 512 MB, too much"
    ]


def test_a_peak_is_said_in_steps_beside_the_weights():
    assert class_of(511.9, weights=0) == "under 512 MB"
    assert class_of(512, weights=0) == "under 640 MB"
    assert class_of(1199, weights=50) == "under 1280 MB"
    assert class_of(1201, weights=50) == "under 1280 MB, too much"


def test_no_conversion_takes_more_than_four_times_the_weights_and_a_gigabyte():
    assert [
        name
        for name, state in table.load().items()
        if TOO_MUCH in state.get("memory", "")
    ] == []


def test_what_is_exact_stays_exact():
    exact = {"net": {"8 bits": "exact"}}
    assert table.differences(exact, exact) == []
    assert table.differences(exact, {"net": {"8 bits": 60.0}}) == [
        "net: 8 bits got worse: exact is written down, found 60.0"
    ]


def test_the_table_is_written_one_line_a_model_and_reads_back():
    content = table.text({"b": ROW, "a": {"8 bits": "exact"}})
    assert (
        content.splitlines()[1] == ' "a": {"8 bits": "exact"},'
        and len(content.splitlines()) == 4
    )
    assert json.loads(content) == {"a": {"8 bits": "exact"}, "b": ROW}


def test_the_table_as_it_lies_here_is_as_it_would_be_written():
    assert table.FILE.read_text() == table.text(table.load())


def test_a_program_that_grew_is_named_and_so_is_one_that_shrank():
    assert verdicts(size=40_700, share=25.4) == []
    assert verdicts(size=40_900, share=25.6) == [
        "net: bytes got larger: 40000 is written down, found 40900",
        "net: % of float got larger: 25.0 is written down, found 25.6",
    ]
    assert verdicts(size=37_900) == [
        "net: bytes got smaller: 40000 is written down, found 37900"
    ]


def test_no_program_of_a_config_is_larger_than_30_percent_of_its_float_file():
    """But the one that is named here, with what takes the room."""
    configs = [load_config(path) for path in CONFIGS.glob("*.toml")]
    files = {config.model.path.name for config in configs}
    shares = {
        name: state["% of float"]
        for name, state in table.load().items()
        if "% of float" in state
        and {f"{name.split('/')[-1]}{end}" for end in SUFFIXES} & files
    }
    assert len(shares) == len(configs)
    too_large = {
        name: share
        for name, share in shares.items()
        if share > LARGER.get(name, MOST_OF_FLOAT)
    }
    assert too_large == {}
    fitting = {name for name in LARGER if shares[name] <= MOST_OF_FLOAT}
    assert fitting == set(), "they need no exception any more"
