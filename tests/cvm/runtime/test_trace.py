import hashlib
import tracemalloc

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.runtime import trace
from cvm.runtime.trace import SampleTrace, Trace

# the leaves and roots of the Certificate Transparency project's own test of its Merkle tree
LEAVES = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
A, B, C = (bytes([value]) * 32 for value in (0xAA, 0xBB, 0xCC))
PROGRAM = "11" * 32


@pytest.mark.parametrize("count", range(9))
def test_merkle_roots_are_those_of_rfc_6962(count: int) -> None:
    assert (
        trace.merkle_root(
            [bytes.fromhex(leaf) for leaf in LEAVES[:count]]
        ).hex()
        == ROOTS[count]
    )


@pytest.mark.parametrize(
    ("array", "content"),
    [
        (
            np.asarray([[2, 4, -6]], np.int32),
            "04 02 0100000000000000 0300000000000000 02000000 04000000 faffffff",
        ),
        (np.asarray([258, -2], np.int16), "03 01 0200000000000000 0201 feff"),
        (np.asarray([-1, 1], np.int8), "01 01 0200000000000000 ff 01"),
        (np.asarray([255], np.uint8), "02 01 0100000000000000 ff"),
        (np.asarray([True, False]), "00 01 0200000000000000 01 00"),
        (np.asarray(7, np.int32), "04 00 07000000"),
    ],
)
def test_a_digest_covers_dtype_rank_dimensions_and_little_endian_elements(
    array: np.ndarray, content: str
) -> None:
    assert (
        trace.digest(array) == hashlib.sha256(bytes.fromhex(content)).digest()
    )


def test_a_digest_is_a_literal_for_ever() -> None:
    assert trace.digest(np.asarray([[2, 4, -6]], np.int32)).hex() == (
        "439c707d1a0c5721ce2fd5b5fff636a68d8c49e841d44b907121a173142ea0b2"
    )


def test_memory_order_and_byte_order_do_not_matter() -> None:
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    expected = trace.digest(array)
    assert trace.digest(array.astype(">i4")) == expected
    assert trace.digest(np.asfortranarray(array)) == expected
    assert trace.digest(np.ascontiguousarray(array[::-1])[::-1]) == expected


def test_shape_and_dtype_matter() -> None:
    zeros = [
        np.zeros(shape, dtype)
        for shape in [(4,), (2, 2), (1, 4)]
        for dtype in ("i1", "u1", "?", "i4")
    ]
    assert len({trace.digest(array) for array in zeros}) == 12


def traces(
    *samples: SampleTrace, program: str = PROGRAM, first_value: int = 5
) -> Trace:
    return Trace(program, first_value, samples)


def test_equal_traces_have_no_difference() -> None:
    assert (
        trace.first_difference(
            traces(SampleTrace.of([A, B])), traces(SampleTrace.of([A, B]))
        )
        is None
    )


def test_the_first_difference_is_that_of_the_first_sample_then_the_first_instruction() -> (
    None
):
    one = traces(
        SampleTrace.of([A, B, C]),
        SampleTrace.of([A, A, A]),
        SampleTrace.of([B]),
    )
    other = traces(
        SampleTrace.of([A, B, C]),
        SampleTrace.of([A, B, C]),
        SampleTrace.of([C]),
    )
    found = trace.first_difference(one, other)
    assert found is not None
    assert (found.sample, found.instruction, found.expected, found.found) == (
        1,
        1,
        "aa" * 32,
        "bb" * 32,
    )
    assert trace.describe(found, 5) == "sample 1, instruction 1 (%6)"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (traces(SampleTrace.of([A, B]), program="22" * 32), "program_id"),
        (traces(SampleTrace.of([A, B]), first_value=6), "first_value"),
        (
            traces(SampleTrace.of([A, B]), SampleTrace.of([A, B])),
            "number of samples",
        ),
        (traces(SampleTrace.of([A])), "sample 0, number of instructions"),
        (traces(SampleTrace((A, B), C)), "sample 0, root"),
    ],
)
def test_whatever_else_differs_is_named(other: Trace, said: str) -> None:
    found = trace.first_difference(traces(SampleTrace.of([A, B])), other)
    assert found is not None
    assert trace.describe(found, 5) == said


def test_a_trace_is_read_back_as_written() -> None:
    written = traces(SampleTrace.of([A, B]), SampleTrace.of([C, A]))
    assert trace.from_json(trace.to_json(written).encode(), "t.json") == written


def test_the_text_of_a_trace_is_one_and_the_same() -> None:
    assert trace.to_json(traces(SampleTrace((A,), B))) == (
        '{\n "first_value": 5,\n "format": "cvm-trace-1",\n'
        f' "program": "{PROGRAM}",\n "samples": [\n  {{\n   "digests": [\n    "{"aa" * 32}"\n   ],\n'
        f'   "root": "{"bb" * 32}"\n  }}\n ]\n}}\n'
    )


GOOD = trace.to_json(traces(SampleTrace.of([A])))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "",
            "t.json: must be an object of JSON, of format cvm-trace-1",
        ),
        (
            "[1",
            "t.json: must be an object of JSON, of format cvm-trace-1",
        ),
        (
            "[" * 10**5,
            "t.json: must be an object of JSON, of format cvm-trace-1",
        ),
        ("[]", "t.json: must be an object of JSON, of format cvm-trace-1"),
        ("{}", "t.json: lacks 'format'"),
        (
            GOOD.replace("trace-1", "trace-2"),
            "t.json: format is 'cvm-trace-2'; expected 'cvm-trace-1'",
        ),
        (
            GOOD.replace('"program"', '"format"'),
            "t.json: not the JSON of a receipt or trace: byte 56: an object has the same key twice",
        ),
        (
            GOOD.replace("}\n]", '}],"more":1', 1).replace(
                "5,", '5,"more":1,', 1
            ),
            "t.json: has the unknown key 'more'",
        ),
        (
            GOOD.replace(": 5", ": 5.0"),
            "t.json: first_value must be an integer that is not negative, of at most 100 digits",
        ),
        (
            GOOD.replace(": 5", ": NaN"),
            "t.json: first_value must be an integer that is not negative, of at most 100 digits",
        ),
        (
            GOOD.replace(": 5", ": -5"),
            "t.json: first_value must be an integer that is not negative, of at most 100 digits",
        ),
        (
            GOOD.replace(": 5", ": true"),
            "t.json: first_value must be an integer that is not negative, of at most 100 digits",
        ),
        (
            GOOD.replace("aa", "AA"),
            "t.json: samples[0].digests[0] must be 64 lower-case hexadecimal digits",
        ),
        (
            GOOD.replace("1111", "111", 1),
            "t.json: program must be 64 lower-case hexadecimal digits",
        ),
        (
            GOOD.replace("11", "111", 1),
            "t.json: program must be 64 lower-case hexadecimal digits",
        ),
        (
            GOOD.replace("11", "\\n", 1),
            "t.json: program must be 64 lower-case hexadecimal digits",
        ),
        (
            GOOD.replace('1111"', '1111\\n"', 1),
            "t.json: program must be 64 lower-case hexadecimal digits",
        ),
        (
            GOOD.replace('"root": "', '"x": 7, "root": "'),
            "t.json: samples[0] has the unknown key 'x'",
        ),
    ],
)
def test_nonsense_is_refused_naming_the_place(text: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        trace.from_json(text.encode(), "t.json")
    assert str(caught.value) == said


def test_a_sample_of_no_instructions_is_refused() -> None:
    text = trace.to_json(traces(SampleTrace((), A)))
    with pytest.raises(BadInput, match=r"samples\[0\].digests is empty"):
        trace.from_json(text.encode(), "t.json")


def test_an_integer_of_a_million_digits_is_refused() -> None:
    with pytest.raises(BadInput, match="of at most 100 digits"):
        trace.from_json(
            GOOD.replace(": 5", ": " + "5" * 10**6).encode(), "t.json"
        )


def test_the_largest_traces_take_no_more_memory_than_they_have_bytes() -> None:
    """Twice as much for a moment, when the list becomes a tuple."""
    text = trace.to_json(traces(SampleTrace((A,) * 30_000, B))).encode()
    tracemalloc.start()
    found = trace.from_json(text, "t.json")
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.samples[0].digests == (A,) * 30_000
    assert kept < 1.2 * len(text) and peak < 2 * len(text)


@pytest.mark.parametrize(
    "start",
    [
        '{"samples":[' + "[]," * 10**6,
        '{"samples":[' + "{}," * 10**6,
        '{"samples":' + "[" * 10**6,
        '{"format":"cvm-trace-1","samples":[{"digests":[' + '"",' * 10**6,
        '{"samples":[{"digests":["' + "0" * 10**7 + '"',
        '{"' + "x" * 10**7 + '":1',
        '{"' + r"\n" * 10**7,
    ],
)
def test_what_is_no_trace_is_refused_before_it_takes_memory(start: str) -> None:
    data = start.encode()
    tracemalloc.start()
    with pytest.raises(BadInput):
        trace.from_json(data, "t.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(data) + 100_000
