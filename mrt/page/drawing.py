"""The drawing of the network: its nodes in columns from top to bottom, and three measures by which they are coloured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from mrt.page.layout import WIDTH, Layout, Point, layout
from mrt.page.limits import NODES, PLACES, shown
from mrt.page.network import Node, contracted, totals

HEIGHT, ROW = 38.0, 58.0  # of a node, and from one row to the next, in pixels
MARGIN, LEAD = (
    6.0,
    14.0,
)  # around the drawing; for lines that go on in another column
BETWEEN = 34.0  # columns
WIDEST, FEWEST_ROWS = 1080.0, 10
LONGEST_LABEL = 27
DECIBELS = (40.0, 30.0, 20.0, 10.0)
SHARES = (0.001, 0.01, 0.05, 0.2)


@dataclass(frozen=True)
class Box:
    """A node as drawn: its text and level (0 harmless to 4, None unknown) by each measure."""

    x: float
    y: float
    label: str
    name: str
    kind: str
    texts: Mapping[str, str]
    levels: Mapping[str, int | None]
    number: int | None  # of the value, where it is compared


@dataclass(frozen=True)
class Drawing:
    """Boxes, paths of lines, and the size; of `total` nodes not all may be drawn."""

    boxes: Sequence[Box]
    paths: Sequence[str]
    width: float
    height: float
    total: int
    node_width: float = WIDTH
    node_height: float = HEIGHT


def draw(nodes: Sequence[Node]) -> Drawing:
    """Draw the network, or its most telling nodes."""
    edges = contracted(nodes, _telling(nodes))
    graph_layout = layout(edges, PLACES)
    grid = _Grid.of(graph_layout)
    sums = totals(nodes)
    boxes = [
        _box(nodes[place], grid.top(point), sums)
        for place, point in graph_layout.nodes.items()
    ]
    paths = [grid.path(line) for line in graph_layout.lines]
    return Drawing(boxes, paths, grid.width, grid.height, len(nodes))


def _telling(nodes: Sequence[Node]) -> set[int]:
    """All nodes, or the worst, the costliest and the largest in turn."""
    if len(nodes) <= NODES:
        return set(range(len(nodes)))
    measures: list[Callable[[int], float]] = [
        lambda place: _decibels(nodes[place]),
        lambda place: -nodes[place].work.cost,
        lambda place: -nodes[place].constant_bytes,
    ]
    orders = [sorted(range(len(nodes)), key=measure) for measure in measures]
    chosen: dict[int, None] = {0: None, len(nodes) - 1: None}
    for place in chain.from_iterable(zip(*orders, strict=True)):
        if len(chosen) == NODES:
            break
        chosen[place] = None
    return set(chosen)


def _decibels(node: Node) -> float:
    snr = node.layer.snr_db if node.layer is not None else None
    return math.inf if snr is None else snr


def _box(
    node: Node, corner: tuple[float, float], sums: Mapping[str, int]
) -> Box:
    name = node.name or "(not compared)"
    label = (
        shown(name, LONGEST_LABEL - 3) if len(name) > LONGEST_LABEL else name
    )
    cost = node.work.cost / max(sums["cost"], 1)
    size = node.constant_bytes / max(sums["bytes"], 1)
    more = sum(node.instructions.values()) - 1
    kind = (
        "input of the program"
        if node.is_input
        else node.main + (f" +{more}" if more else "")
    )
    return Box(
        *corner,
        shown(label),
        shown(name),
        kind,
        {"loss": _loss(node), "cost": percent(cost), "bytes": percent(size)},
        {
            "loss": _level_of_loss(node),
            "cost": _level_of_share(cost),
            "bytes": _level_of_share(size),
        },
        None if node.layer is None else node.layer.number,
    )


def _loss(node: Node) -> str:
    if node.layer is None:
        return ""
    snr = node.layer.snr_db
    return "exact" if snr is None else f"{snr:.1f} dB"


def _level_of_loss(node: Node) -> int | None:
    if node.layer is None:
        return None
    return sum(_decibels(node) < limit for limit in DECIBELS)


def _level_of_share(share: float) -> int:
    return sum(share >= limit for limit in SHARES)


def percent(share: float) -> str:
    """A share for people: two digits, or that it is next to nothing."""
    if share == 0:
        return "0 %"
    if share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


@dataclass(frozen=True)
class _Grid:
    """Rows in columns, as text on a page: a line that leaves one at its end goes on at the top of the next."""

    rows: int  # of each column
    step: float  # from column to column
    width: float
    height: float

    @classmethod
    def of(cls, graph_layout: Layout) -> _Grid:
        step = graph_layout.width + BETWEEN
        fitting = max(1, int((WIDEST + BETWEEN) // step))
        columns = max(
            1, min(fitting, math.ceil(graph_layout.rows / FEWEST_ROWS))
        )
        rows = max(1, math.ceil(graph_layout.rows / columns))
        columns = math.ceil(graph_layout.rows / rows)
        width = columns * step - BETWEEN + 2 * MARGIN
        height = rows * ROW - (ROW - HEIGHT) + 2 * (MARGIN + LEAD)
        return cls(rows, step, width, height)

    def top(self, point: Point) -> tuple[float, float]:
        """The middle of the upper edge of a node."""
        x, row = point
        column, place = divmod(row, self.rows)
        return MARGIN + column * self.step + x, MARGIN + LEAD + place * ROW

    def path(self, line: Sequence[Point]) -> str:
        """The commands of an SVG path through the points of a line."""
        parts = []
        for index, (upper, lower) in enumerate(pairwise(line)):
            x, y = self.top(upper)
            last_x, last_y = self.top(lower)
            if index:  # beside the nodes of its row
                parts.append(f"M{x:.0f} {y:.0f}v{HEIGHT:.0f}")
            y += HEIGHT
            if upper[1] // self.rows == lower[1] // self.rows:
                parts.append(_curve(x, y, last_x, last_y))
            else:
                parts.append(f"M{x:.0f} {y:.0f}V{self.height - MARGIN:.0f}")
                parts.append(f"M{last_x:.0f} {MARGIN:.0f}V{last_y:.0f}")
        return "".join(parts)


def _curve(x: float, y: float, last_x: float, last_y: float) -> str:
    if abs(x - last_x) < 1:
        return f"M{x:.0f} {y:.0f}V{last_y:.0f}"
    half = (last_y - y) / 2
    return f"M{x:.0f} {y:.0f}c0 {half:.0f} {last_x - x:.0f} {half:.0f} {last_x - x:.0f} {last_y - y:.0f}"
