"""Lines that breathe: how much the code of mrt and cvm may hold per line, in the definitions of `benchmarks/sizes.py`."""

from pathlib import Path

import pytest

from benchmarks.sizes import measure

ROOT = Path(__file__).resolve().parent.parent
MOST_TOKENS_A_LINE = {"mrt": 8.5, "cvm": 8.5}
MOST_LINES_OF_A_FILE = 500
DENSE = '''"""A docstring is not counted."""
# nor is a comment
total = sum(item for item in numbers if item) if numbers and ready else 0
'''


@pytest.mark.parametrize("package", MOST_TOKENS_A_LINE)
def test_a_line_holds_what_a_reader_takes_in_at_once(package):
    sizes = measure([ROOT / package])
    assert sizes.lines > 5000
    assert sizes.tokens_per_line <= MOST_TOKENS_A_LINE[package]


@pytest.mark.parametrize("package", MOST_TOKENS_A_LINE)
def test_no_file_is_longer_than_one_idea(package):
    for path in (ROOT / package).rglob("*.py"):
        lines = path.read_text().count("\n")
        assert lines <= MOST_LINES_OF_A_FILE, (
            f"{path.relative_to(ROOT)}: {lines} lines"
        )


def test_sizes_are_counted_as_they_are_defined(tmp_path):
    (tmp_path / "dense.py").write_text(DENSE)
    sizes = measure([tmp_path])
    assert (sizes.files, sizes.lines, sizes.tokens) == (1, 1, 18)
    assert (sizes.comprehensions, sizes.conditionals) == (1, 1)
    assert (
        sizes.branches == 4
    )  # the conditional, `and`, the generator and its `if`
