"""How much of a model the page shows: a stranger's may have a million values, and a page is to be read."""

from __future__ import annotations

from cvm.errors import printable

NODES = 240  # of the network that are drawn
PLACES = 20_000  # of the drawing, those included that lines pass through
SOURCES = 12  # lines into one node
WORKERS = 16  # layers of which work and bytes are shown
MENDED = 10  # worst layers, with the lines that mend them
ANSWERS = 10  # samples whose answer changed
OUTPUTS = 12
DISTRIBUTIONS = 24
REMARKS = 12
LONGEST = 120  # characters of a name
LONGEST_REMARK = 600


def shown(name: str, most: int = LONGEST) -> str:
    """A name on one line and not too long, its end kept: names of layers differ there."""
    text = printable(
        name[:most] if len(name) <= most else _without_middle(name, most)
    )
    return text if len(text) <= 2 * most else f"{text[: 2 * most]}..."


def _without_middle(name: str, most: int) -> str:
    head = most // 2
    return f"{name[:head]}...{name[-(most - head) :]}"
