"""Measures how dense code is: sizes of files and functions, and tokens per line of each room.

    python -m benchmarks.sizes            the rooms of mrt and cvm
    python -m benchmarks.sizes FOLDER...  any folders or files

A code line has a token that is neither a comment nor part of a docstring. A branch
point is an if, elif, for, while, except, conditional expression, comprehension clause,
assert, or each operator of an `and` or `or`.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG_LINE = 100
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BRANCHES = (
    ast.If,
    ast.For,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.Assert,
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass
class Sizes:
    """Counts over some files."""

    files: int = 0
    lines: int = 0
    tokens: int = 0
    branches: int = 0
    comprehensions: int = 0
    conditionals: int = 0
    long_lines: int = 0
    functions: list[int] = field(default_factory=list)  # code lines of each

    @property
    def tokens_per_line(self) -> float:
        """The tokens per code line."""
        return self.tokens / max(self.lines, 1)

    def row(self, name: str) -> str:
        """Return one line of the table."""
        functions = sorted(self.functions) or [0]
        cells = (
            f"{self.files:5d}",
            f"{self.lines:7d}",
            f"{self.tokens_per_line:7.2f}",
            f"{10 * self.branches / max(self.lines, 1):9.2f}",
            f"{1000 * self.comprehensions / max(self.lines, 1):8.1f}",
            f"{1000 * self.conditionals / max(self.lines, 1):9.1f}",
            f"{100 * self.long_lines / max(self.lines, 1):8.2f}",
            f"{len(functions):6d}",
            f"{statistics.median(functions):5.0f}",
            f"{functions[9 * len(functions) // 10]:4d}",
            f"{functions[-1]:4d}",
        )
        return f"{name:32}" + " ".join(cells)


HEADER = (
    f"{'room':32}files   lines tokens/l branch/10 compr/1k ternary/1k %>100col"
    "  funcs   med  p90  max"
)


def python_files(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the Python files among these folders and files."""
    for place in places:
        if place.is_file():
            yield place
        else:
            yield from sorted(place.rglob("*.py"))


def measure(places: Iterable[Path]) -> Sizes:
    """Return the counts over all Python files of these places."""
    sizes = Sizes()
    for path in python_files(places):
        _add_file(sizes, path.read_text(encoding="utf-8"))
    return sizes


def _add_file(sizes: Sizes, text: str) -> None:
    tree = ast.parse(text)
    documentation = _lines_of_docstrings(tree)
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in LAYOUT or token.start[0] in documentation:
            continue
        sizes.tokens += 1
        code.update(range(token.start[0], token.end[0] + 1))
    sizes.files += 1
    sizes.lines += len(code)
    source = text.splitlines()
    sizes.long_lines += sum(len(source[line - 1]) > LONG_LINE for line in code)
    for node in ast.walk(tree):
        _add_node(sizes, node, code)


def _add_node(sizes: Sizes, node: ast.AST, code: set[int]) -> None:
    if isinstance(node, FUNCTIONS):
        end = node.end_lineno or node.lineno
        inside = range(node.lineno, end + 1)
        sizes.functions.append(sum(line in code for line in inside))
    if isinstance(node, BRANCHES):
        sizes.branches += 1
    if isinstance(node, ast.BoolOp):
        sizes.branches += len(node.values) - 1
    if isinstance(node, ast.IfExp):
        sizes.conditionals += 1
    if isinstance(node, COMPREHENSIONS):
        sizes.comprehensions += 1
        sizes.branches += sum(
            1 + len(generator.ifs) for generator in node.generators
        )


def _lines_of_docstrings(tree: ast.AST) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, DOCUMENTED) or not node.body:
            continue
        first = node.body[0]
        is_text = isinstance(first, ast.Expr) and isinstance(
            first.value, ast.Constant
        )
        if is_text and isinstance(first.value.value, str):
            lines.update(
                range(first.lineno, (first.end_lineno or first.lineno) + 1)
            )
    return lines


def rooms() -> Iterator[Path]:
    """Yield `mrt` and `cvm`, each followed by its folders."""
    for package in (ROOT / "mrt", ROOT / "cvm"):
        yield package
        for folder in sorted(package.iterdir()):
            if folder.is_dir() and any(folder.rglob("*.py")):
                yield folder


def main(arguments: list[str]) -> None:
    """Print the table."""
    places = [Path(name) for name in arguments] or list(rooms())
    print(HEADER)
    for place in places:
        inside = place.is_absolute() and place.is_relative_to(ROOT)
        name = place.relative_to(ROOT) if inside else place
        print(measure([place]).row(str(name)))


if __name__ == "__main__":
    main(sys.argv[1:])
