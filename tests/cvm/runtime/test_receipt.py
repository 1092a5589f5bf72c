import hashlib
import re
import tracemalloc

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.runtime import receipt
from cvm.runtime.execution import Result
from cvm.runtime.receipt import Receipt, SampleReceipt

A, B, C = (bytes([value]) * 32 for value in (0xAA, 0xBB, 0xCC))
PROGRAM, METADATA = "11" * 32, "22" * 32
SAMPLE = SampleReceipt({"x": A}, {"y": B}, 7)


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


HEADER = f'{{"cost_weights":1,"format":"cvm-receipt-2","program":"{PROGRAM}"'.encode()
LEAF = f'{{"cost":7,"inputs":{{"x":"{"aa" * 32}"}},"outputs":{{"y":"{"bb" * 32}"}}}}'.encode()
TRACED_LEAF = LEAF[:-1] + f',"trace":"{"cc" * 32}"}}'.encode()
TRACED = SampleReceipt({"x": A}, {"y": B}, 7, C)


def test_the_root_is_over_the_header_and_the_samples() -> None:
    header = sha(b"\0" + HEADER + b',"samples":1}')
    one = sha(b"\1" + header + sha(b"\0" + LEAF))
    assert Receipt.of(PROGRAM, None, [SAMPLE]).root == one
    header = sha(b"\0" + HEADER + b',"samples":2}')
    pair = sha(b"\1" + header + sha(b"\0" + TRACED_LEAF))
    two = sha(b"\1" + pair + sha(b"\0" + TRACED_LEAF))
    assert Receipt.of(PROGRAM, None, [TRACED, TRACED]).root == two


def test_the_root_binds_the_program_the_metadata_and_the_weights() -> None:
    roots = {
        Receipt.of(program, metadata, [SAMPLE]).root
        for program in (PROGRAM, METADATA)
        for metadata in (None, PROGRAM, METADATA)
    }
    other = Receipt(PROGRAM, None, 2, (SAMPLE,), b"").true_root()
    assert len(roots | {other}) == 7


def test_the_root_of_version_1_is_over_the_samples_alone() -> None:
    both = Receipt(PROGRAM, METADATA, 1, (SAMPLE, TRACED), b"", version=1)
    pair = sha(b"\0" + LEAF) + sha(b"\0" + TRACED_LEAF)
    assert both.true_root() == sha(b"\1" + pair)


def test_names_are_sorted_and_ascii_in_a_leaf() -> None:
    one = SampleReceipt({"b": A, "a": B, "é": C}, {}, 0)
    leaf = f'{{"cost":0,"inputs":{{"a":"{"bb" * 32}","b":"{"aa" * 32}","\\u00e9":"{"cc" * 32}"}},"outputs":{{}}}}'
    receipt_1 = Receipt(PROGRAM, None, 1, (one,), b"", version=1)
    assert receipt_1.true_root() == sha(b"\0" + leaf.encode())


def test_a_sample_is_digested_as_it_went_in_and_came_out() -> None:
    x, y = np.asarray([1], np.int8), np.asarray([-2], np.int32)
    noted = receipt.of_sample({"x": x}, Result({"y": y}, (A, B)), 9)
    assert noted == SampleReceipt(
        {"x": sha(bytes.fromhex("01 01 0100000000000000 01"))},
        {"y": sha(bytes.fromhex("04 01 0100000000000000 feffffff"))},
        9,
        sha(b"\1" + sha(b"\0" + A) + sha(b"\0" + B)),
    )
    assert receipt.of_sample({"x": x}, Result({"y": y}, ()), 9).trace is None


@pytest.mark.parametrize("metadata", [None, METADATA])
@pytest.mark.parametrize("trace", [None, C])
def test_a_receipt_is_read_back_as_written(
    metadata: str | None, trace: bytes | None
) -> None:
    samples = [
        SampleReceipt(names, {"y": A}, 7, trace) for names in ({"x": B}, {})
    ]
    written = Receipt.of(PROGRAM, metadata, samples)
    assert (
        receipt.from_json(receipt.to_json(written).encode(), "r.json")
        == written
    )


def test_the_text_of_a_receipt_is_one_and_the_same() -> None:
    assert receipt.to_json(Receipt(PROGRAM, METADATA, 1, (SAMPLE,), C)) == (
        f'{{\n "cost_weights": 1,\n "format": "cvm-receipt-2",\n "metadata": "{METADATA}",\n "program": "{PROGRAM}",\n'
        f' "root": "{"cc" * 32}",\n "samples": [\n  {{\n   "cost": 7,\n'
        f'   "inputs": {{\n    "x": "{"aa" * 32}"\n   }},\n'
        f'   "outputs": {{\n    "y": "{"bb" * 32}"\n   }}\n  }}\n ]\n}}\n'
    )


VERSION_1 = f"""{{
 "cost_weights": 1,
 "format": "cvm-receipt-1",
 "program": "{PROGRAM}",
 "root": "{"cc" * 32}",
 "samples": [
  {{"cost": 7, "inputs": {{"x": "{"aa" * 32}"}}, "outputs": {{"y": "{"bb" * 32}"}}}},
  {{"cost": 7, "inputs": {{}}, "outputs": {{}}, "trace": "{"cc" * 32}"}}
 ]
}}"""


def test_a_receipt_of_version_1_is_read_though_only_some_samples_are_traced() -> (
    None
):
    found = receipt.from_json(VERSION_1.encode(), "r.json")
    samples = (SAMPLE, SampleReceipt({}, {}, 7, C))
    assert found == Receipt(PROGRAM, None, 1, samples, C, version=1)


@pytest.mark.parametrize("traced", [0, 1])
def test_in_version_2_all_samples_are_traced_or_none(traced: int) -> None:
    samples = [SAMPLE, SAMPLE]
    samples[traced] = TRACED
    text = receipt.to_json(Receipt.of(PROGRAM, None, samples))
    problem = (
        rf"samples\[{1 - traced}\] lacks 'trace', which other samples have"
    )
    with pytest.raises(BadInput, match=f"^r.json: {problem}$"):
        receipt.from_json(text.encode(), "r.json")


GOOD = receipt.to_json(
    Receipt.of(PROGRAM, METADATA, [SampleReceipt({"x": A}, {"y": B}, 7, C)])
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("null", "r.json: must be an object of JSON, of format cvm-receipt-2"),
        (
            GOOD.replace("receipt-2", "receipt-9"),
            "r.json: format is 'cvm-receipt-9'; expected 'cvm-receipt-1' or 'cvm-receipt-2'",
        ),
        (
            '{"format": "cvm-trace-1", "first_value": 2}',
            "r.json: format is 'cvm-trace-1'; expected 'cvm-receipt-1' or 'cvm-receipt-2'",
        ),
        (
            '{"format": null}',
            "r.json: format must be a text",
        ),
        (
            GOOD.replace('"root"', '"r\\u001b"'),
            r"r.json: has the unknown key 'r\x1b'",
        ),
        (
            re.sub(r' "root": "\w+",\n', "", GOOD),
            "r.json: lacks 'root'",
        ),
        (
            GOOD.replace('"cost": 7', '"cost": "7"'),
            "r.json: samples[0].cost must be an integer that is not negative, of at most 100 digits",
        ),
        (
            GOOD.replace("aa", "a", 1),
            "r.json: samples[0].inputs['x'] must be 64 lower-case hexadecimal digits",
        ),
        (
            GOOD.replace("bb", "Bb", 1),
            "r.json: samples[0].outputs['y'] must be 64 lower-case hexadecimal digits",
        ),
        (
            GOOD.replace("cc", "c\\n", 1),
            "r.json: samples[0].trace must be 64 lower-case hexadecimal digits",
        ),
        (
            GOOD.replace("2222", "", 1),
            "r.json: metadata must be 64 lower-case hexadecimal digits",
        ),
        (
            GOOD.replace('"inputs"', '"ins"'),
            "r.json: samples[0] has the unknown key 'ins'",
        ),
        (
            GOOD.replace('"trace"', '"tracy"'),
            "r.json: samples[0] has the unknown key 'tracy'",
        ),
        (
            GOOD.replace("[", '{"0":', 1).replace("]", "}", 1),
            "r.json: samples must be a list",
        ),
    ],
)
def test_nonsense_is_refused_naming_the_place(text: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        receipt.from_json(text.encode(), "r.json")
    assert str(caught.value) == said


def test_the_largest_receipts_take_little_more_memory_than_they_have_bytes() -> (
    None
):
    """An object of Python's for every sample and two dictionaries, each larger than its text."""
    text = receipt.to_json(Receipt.of(PROGRAM, None, [SAMPLE] * 5_000))
    tracemalloc.start()
    found = receipt.from_json(text.encode(), "r.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.samples == (SAMPLE,) * 5_000
    assert peak < 5 * len(text)


def test_more_names_than_a_program_can_have_are_refused() -> None:
    names = {str(number): A for number in range(1025)}
    text = receipt.to_json(
        Receipt.of(PROGRAM, None, [SampleReceipt(names, {}, 7)])
    )
    with pytest.raises(
        BadInput, match=r"samples\[0\]\.inputs has more than 1024 names"
    ):
        receipt.from_json(text.encode(), "r.json")


def test_a_file_beyond_the_limit_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cvm.file.document.MAX_BYTES", 10)
    with pytest.raises(
        BadInput, match=r"^r.json: 11 bytes; at most 10 are read$"
    ):
        receipt.from_json(b" " * 11, "r.json")


def test_what_differs_before_a_run_is_named() -> None:
    stated = Receipt.of(PROGRAM, METADATA, [SAMPLE])

    def what(
        program: str = PROGRAM,
        metadata: str | None = METADATA,
        samples: int = 1,
    ) -> str | None:
        found = receipt.run_mismatch(
            stated, program_id=program, metadata=metadata, samples=samples
        )
        return found and found.what

    assert what() is None
    assert what(metadata=None) is None
    assert what(program="33" * 32) == "the program"
    assert what(metadata="33" * 32) == "the metadata"
    assert what(samples=2) == "the number of samples"
    other_weights = Receipt(PROGRAM, None, 2, (SAMPLE,), A)
    found = receipt.run_mismatch(
        other_weights, program_id=PROGRAM, metadata=None, samples=1
    )
    assert found == receipt.Mismatch(
        "the version of the cost weights", "2", "1"
    )


@pytest.mark.parametrize(
    ("found", "what", "expected", "other"),
    [
        (
            SampleReceipt({"x": C}, {"y": C}, 7),
            "sample 4, input 'x'",
            "aa" * 32,
            "cc" * 32,
        ),
        (
            SampleReceipt({"x": A}, {"y": C}, 8),
            "sample 4, output 'y'",
            "bb" * 32,
            "cc" * 32,
        ),
        (
            SampleReceipt({"x": A}, {"y": B, "z": C}, 7),
            "sample 4, output 'z'",
            "nothing",
            "cc" * 32,
        ),
        (
            SampleReceipt({"x": A}, {}, 7),
            "sample 4, output 'y'",
            "bb" * 32,
            "nothing",
        ),
        (SampleReceipt({"x": A}, {"y": B}, 8), "sample 4, cost", "7", "8"),
    ],
)
def test_the_first_thing_that_differs_in_a_sample_is_named(
    found: SampleReceipt, what: str, expected: str, other: str
) -> None:
    assert receipt.sample_mismatch(4, SAMPLE, found) == receipt.Mismatch(
        what, expected, other
    )


def test_version_2_compares_its_metadata_with_the_program_s_own() -> None:
    """Also where no real value is converted, so that garbage in its place is found."""
    one, two = (
        Receipt(PROGRAM, METADATA, 1, (SAMPLE,), C, version)
        for version in (1, 2)
    )
    same = receipt.metadata_to_compare
    assert same(one, used=None, own=PROGRAM) is None
    assert same(one, used=METADATA, own=METADATA) == METADATA
    assert same(two, used=None, own=METADATA) == METADATA
    assert same(two, used=None, own=None) == "none"


def test_clipped_values_are_in_the_leaf_and_compared_where_both_count() -> None:
    none, two, three = (
        SampleReceipt({"x": A}, {"y": B}, 7, None, count)
        for count in (None, 2, 3)
    )
    assert two.content() == {**none.content(), "clipped": 2}
    assert receipt.sample_mismatch(1, none, two) is None
    assert receipt.sample_mismatch(1, two, none) is None
    assert receipt.sample_mismatch(1, two, three) == receipt.Mismatch(
        "sample 1, number of clipped values", "2", "3"
    )
    made = Receipt.of(PROGRAM, METADATA, [two, three])
    text = receipt.to_json(made).encode()
    assert receipt.from_json(text, "r.json") == made
    for samples, problem in (
        (
            [two, none],
            r"samples\[1\] lacks 'clipped', which other samples have",
        ),
        (
            [none, two],
            r"samples\[0\] lacks 'clipped', which other samples have",
        ),
    ):
        mixed = receipt.to_json(Receipt.of(PROGRAM, METADATA, samples))
        with pytest.raises(BadInput, match=f"^r.json: {problem}$"):
            receipt.from_json(mixed.encode(), "r.json")


def test_trace_roots_are_compared_where_both_have_one() -> None:
    traced, differently = (
        SampleReceipt({"x": A}, {"y": B}, 7, root) for root in (B, C)
    )
    assert receipt.sample_mismatch(0, traced, SAMPLE) is None
    found = receipt.sample_mismatch(0, traced, differently)
    assert found == receipt.Mismatch(
        "sample 0, root of the trace", "bb" * 32, "cc" * 32
    )
