"""Words that docs/GLOSSARY.md has retired stay out of the code: names, docstrings, comments and messages."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RETIRED = {
    *(
        "twin",
        "twins",
        "nudge",
        "nudges",
        "silent",
        "loud",
        "onlooker",
        "onlookers",
    ),
    *("fate", "fates", "landmark", "landmarks", "settle", "settles", "settled"),
    *(
        "spell",
        "spells",
        "spelled",
        "spelling",
        "arrange",
        "arranged",
        "precise",
    ),
    *(
        "thinning",
        "ancient",
        "contest",
        "contests",
        "bought",
        "truth",
        "truths",
    ),
    *("trouble", "troubles"),
}
PHRASES = re.compile(
    r"\bwhole numbers?\b|\btruths\b|\bsaid of\b", re.IGNORECASE
)
STILL_READ = {  # the words that stand in released files and options
    "mrt/duplicate/provenance.py": {"twins"},
    "mrt/graph/notes.py": {"twins"},
    "mrt/quantize/dither.py": {"twins"},
    "mrt/refine/options.py": {"twins"},
    "mrt/table/table.py": {"twins"},
    "cvm/reference/detection.py": {"loud"},
}
VAGUE = {"found", "item", "thing", "stuff"}
FILES = [
    path
    for package in ("mrt", "cvm", "benchmarks")
    for path in sorted((ROOT / package).rglob("*.py"))
]


def words(text: str) -> set[str]:
    """The parts of snake_case and CamelCase names, in lower case."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return {word.lower() for word in re.split(r"[^A-Za-z]+", apart) if word}


def words_of(path: Path) -> set[str]:
    found: set[str] = set()
    source = io.StringIO(path.read_text(encoding="utf-8"))
    for token in tokenize.generate_tokens(source.readline):
        if token.type in (tokenize.NAME, tokenize.COMMENT, tokenize.STRING):
            found |= words(token.string)
    return found


@pytest.mark.parametrize(
    "path", FILES, ids=lambda path: str(path.relative_to(ROOT))
)
def test_no_file_uses_a_retired_word(path):
    allowed = STILL_READ.get(str(path.relative_to(ROOT)), set())
    assert words_of(path) & RETIRED - allowed == set()
    assert PHRASES.findall(path.read_text(encoding="utf-8")) == []


def names_in_functions(path: Path) -> set[str]:
    """The names that functions give to arguments and values."""
    names: set[str] = set()
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        for part in ast.walk(function):
            if isinstance(part, ast.arg):
                names.add(part.arg)
            elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                names.add(part.id)
    return names


def test_names_are_of_what_values_are():
    """Not of how the program came by them."""
    vague = {
        str(path.relative_to(ROOT)): names_in_functions(path) & VAGUE
        for path in FILES
        if "benchmarks" not in path.parts
    }
    assert {path: names for path, names in vague.items() if names} == {}


def test_names_in_the_engine_are_of_what_values_are():
    sources = [
        path
        for end in ("*.cpp", "*.h")
        for path in sorted((ROOT / "cvm" / "engine").rglob(end))
    ]
    assert len(sources) > 100
    vague = re.compile(rf"\b({'|'.join(sorted(VAGUE))})\b")
    lines = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if vague.search(re.sub(r'//.*|^\s*/?\*.*|"[^"]*"', "", line))
    ]
    assert lines == []


def test_every_retired_word_that_the_glossary_names_once_is_there_in_full():
    text = (ROOT / "docs" / "GLOSSARY.md").read_text(encoding="utf-8")
    retired = text.split("## Retired words")[1]
    for word in (
        "twin",
        "nudge",
        "onlooker",
        "fate",
        "landmark",
        "settle",
        "spell",
    ):
        assert word in retired


def test_the_glossary_has_each_term_once():
    text = (ROOT / "docs" / "GLOSSARY.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ([^|]+?) \|", text.split("## Retired words")[0], re.MULTILINE
    )
    terms = [
        term.strip()
        for row in rows
        for term in row.split(",")
        if term.strip() not in ("term", "---")
    ]
    assert len(terms) > 80
    assert sorted(terms) == sorted(set(terms))


def test_names_are_taken_apart():
    assert words("CamelCase snake_case2x") == {"camel", "case", "snake", "x"}


def test_a_public_class_has_its_name_for_itself():
    places: dict[str, list[str]] = {}
    programs = (path for path in FILES if "benchmarks" not in path.parts)
    for path in programs:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name[0] != "_":
                place = str(path.relative_to(ROOT))
                places.setdefault(node.name, []).append(place)
    assert len(places) > 100
    assert {n: found for n, found in places.items() if len(found) > 1} == {}
