"""The JSON of receipts and traces as others may write it, and what is none."""

from typing import Any

import pytest

from cvm.errors import BadInput
from cvm.file.document import DocumentReader, Read

FORMAT = '"format": "cvm-test-1"'
DIGEST = "0f" * 32


def read(text: str | bytes) -> dict[str, Any]:
    """Of an object with two numbers, of which one may be left out, a list of them, and names."""
    reader = DocumentReader(
        text.encode() if isinstance(text, str) else text, "f"
    )
    fields: dict[str, Read] = {
        "n": reader.count,
        "list": lambda where: reader.items(where, reader.count),
        "names": reader.digests_by_name,
    }
    return reader.document(["cvm-test-1"], fields, {"m": reader.count})


def test_any_white_space_and_any_order_of_keys_are_read() -> None:
    text = (
        f'\t{{"list" :\r[ 1 ,2\n] , "names":{{}},"m":3,{FORMAT}, "n" : 0 }}\n '
    )
    assert read(text) == {
        "format": "cvm-test-1",
        "list": [1, 2],
        "names": {},
        "m": 3,
        "n": 0,
    }


def test_names_are_read_with_their_escapes() -> None:
    name = r"\"\\\/\n\u00e9\ud83d\ude00"
    text = (
        f'{{{FORMAT}, "list": [], "n": 1, "names": {{"{name}é": "{DIGEST}"}}}}'
    )
    assert read(text)["names"] == {'"\\/\né😀é': bytes([15]) * 32}


def test_a_name_may_be_called_format() -> None:
    text = (
        f'{{"names": {{"format": "{DIGEST}"}}, "list": [], "n": 1, {FORMAT}}}'
    )
    assert read(text)["names"] == {"format": bytes([15]) * 32}


NO_JSON = "f: not the JSON of a receipt or trace: byte "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f: must be an object of JSON, of format cvm-test-1"),
        ("[]", "f: must be an object of JSON, of format cvm-test-1"),
        ("{", "f: must have texts of at most 4096 bytes as keys"),
        ("{n: 1}", "f: must have texts of at most 4096 bytes as keys"),
        ('{"n" 1}', NO_JSON + "5: expected ':'"),
        ('{"n": 1 "m": 1}', NO_JSON + "8: expected ',' or '}'"),
        ('{"n": 1,}', "f: must have texts of at most 4096 bytes as keys"),
        ('{"list": [1 2]}', NO_JSON + "12: expected ',' or ']'"),
        ('{"list": [1,]}', "f: list[1] must be an integer that is not negative, of at most 100 digits"),
        ('{"list": [01]}', "f: list[0] must be an integer that is not negative, of at most 100 digits"),
        ('{"list": [1e3]}', "f: list[0] must be an integer that is not negative, of at most 100 digits"),
        ('{"n": 1, "n": 1}', NO_JSON + "12: an object has the same key twice"),
        ('{"n": 1, "x": 1}', "f: is not a test (format cvm-test-1): has the unknown key 'x'"),
        ('{"names": {"a\nb": ""}}', "f: names must have texts of at most 4096 bytes as keys"),
        ('{"names": {"a": "' + "F" * 64 + '"}}', "f: names['a'] must be 64 lower-case hexadecimal digits"),
        (r'{"names": {"\x": ""}}', NO_JSON + "15: Invalid \\escape: line 1 column 2 (char 1)"),
        ('{"names": {"' + "a" * 5000 + '": ""}}', "f: names must have texts of at most 4096 bytes as keys"),
        (f'{{{FORMAT}, "n": 1, "list": [], "names": {{}}}} x', NO_JSON + "58: something follows the object"),
        (f'{{{FORMAT}, "n": 1, "list": []}}', "f: lacks 'names'"),
        ('{"x": 1, "format": "cvm-test-2"}', "f: format is 'cvm-test-2'; expected 'cvm-test-1'"),
        ('{"format": "y"}', "f: format is 'y'; expected 'cvm-test-1'"),
    ],
)  # fmt: skip
def test_what_is_not_expected_is_refused_where_it_stands(
    text: str, said: str
) -> None:
    with pytest.raises(BadInput) as caught:
        read(text)
    assert str(caught.value) == said


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(BadInput, match=r"not the JSON .*: 'utf-8' codec"):
        read(b'{"names": {"\xff": ""}}')
