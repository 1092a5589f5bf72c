"""The line of a key in a TOML text, however it is written."""

import tomllib

import pytest

from mrt.toml_lines import line_of, lines_of_keys

TEXT = '''\
# [not.a.table]

top = 1
[a]
x = "# no comment ] \\" } \\\\"   # a comment with [ and " in it
'quoted key' = { inner = [ 1, 2 ], "in.ner" = { deep = 3 } }
b.c.d = 4

many = [
  "]",  # ]
  [1,
   2],
]
text = """
y = 1
[no.header] \\""" still ""\\\\""""
z = 5
raw = \'\'\'
z = 6 \\\'\'\'\'
[a . "e.f"]   # and what follows
g = ''
[[tables]]
h = ""
[[tables]]
i = 1
[last.one]
'''
LINES = {
    ("top",): 3,
    ("a",): 4,
    ("a", "x"): 5,
    ("a", "quoted key"): 6,
    ("a", "quoted key", "inner"): 6,
    ("a", "quoted key", "in.ner"): 6,
    ("a", "quoted key", "in.ner", "deep"): 6,
    ("a", "b"): 7,
    ("a", "b", "c"): 7,
    ("a", "b", "c", "d"): 7,
    ("a", "many"): 9,
    ("a", "text"): 14,
    ("a", "z"): 17,
    ("a", "raw"): 18,
    ("a", "e.f"): 20,
    ("a", "e.f", "g"): 21,
    ("tables",): 22,
    ("tables", "h"): 23,
    ("tables", "i"): 25,
    ("last",): 26,
    ("last", "one"): 26,
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_key_has_the_line_on_which_it_is_first_named(newline):
    text = TEXT.replace("\n", newline)
    assert tomllib.loads(text)["a"]["z"] == 5
    assert lines_of_keys(text) == {(): 1, **LINES}


def test_an_item_of_a_list_has_the_line_of_the_list():
    lines = lines_of_keys(TEXT)
    assert line_of(("a", "many", 1, 0), lines) == 9
    assert line_of(("top",), lines) == 3


def test_the_end_of_the_text_ends_a_statement():
    assert lines_of_keys("a = 1\nb = 2") == {(): 1, ("a",): 1, ("b",): 2}
    assert lines_of_keys("") == {(): 1}


def test_a_long_statement_is_read_once():
    text = "a = [\n" + "1,\n" * 100_000 + "]\nb = 1\n"
    assert line_of(("b",), lines_of_keys(text)) == 100_003


def test_what_lies_deep_has_the_line_of_what_is_around_it():
    lines = lines_of_keys("[a.b.c.d.e]\nf = 1\n[g]\nh = 1\n")
    assert line_of(("a", "b", "c", "d", "e", "f"), lines) == 1
    assert line_of(("g", "h"), lines) == 4
    assert max(map(len, lines)) == 4
