"""Places the nodes of a network in rows, inputs above, so that few lines cross (Sugiyama, Tagawa, Toda 1981).

The row of a node is its longest distance from an input. A line over several rows passes
through places of its own. Each row is ordered by the mean place of the neighbours, and
moved as near to them as its width allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

WIDTH, GAP = 190.0, 18.0  # of a node, and between neighbours, in pixels
SWEEPS = 8

Point = tuple[float, int]  # pixels from the left, and the row


@dataclass(frozen=True)
class Layout:
    """The middle of each node, the lines through their points, and the width in pixels."""

    nodes: Mapping[int, Point]
    lines: tuple[tuple[Point, ...], ...]
    width: float
    rows: int


@dataclass
class _Place:
    """A node, or a place through which a line passes."""

    row: int
    width: float
    above: list[int]
    below: list[int]
    x: float = 0.0


def layout(edges: Sequence[tuple[int, Sequence[int]]], most: int) -> Layout:
    """Lay out nodes that are given with their sources, each after these; at most so many places."""
    rows = _rows_of(edges)
    places = {node: _Place(row, WIDTH, [], []) for node, row in rows.items()}
    chains = _chains(edges, places, most)
    by_row: list[list[int]] = [
        [] for _ in range(max(rows.values(), default=-1) + 1)
    ]
    for name, place in places.items():
        by_row[place.row].append(name)
    _order(by_row, places)
    _spread(by_row, places)
    left = min((box.x - box.width / 2 for box in places.values()), default=0.0)
    right = max((box.x + box.width / 2 for box in places.values()), default=0.0)
    points = {name: (box.x - left, box.row) for name, box in places.items()}
    return Layout(
        {node: points[node] for node in rows},
        tuple(tuple(points[name] for name in chain) for chain in chains),
        right - left,
        len(by_row),
    )


def _rows_of(edges: Sequence[tuple[int, Sequence[int]]]) -> dict[int, int]:
    rows: dict[int, int] = {}
    for node, sources in edges:
        rows[node] = max((rows[source] + 1 for source in sources), default=0)
    # An input stands just above its first reader.
    first: dict[int, int] = {}
    for node, sources in edges:
        for source in sources:
            first[source] = min(first.get(source, rows[node]), rows[node])
    for node, sources in edges:
        if not sources and node in first:
            rows[node] = first[node] - 1
    return rows


def _chains(
    edges: Sequence[tuple[int, Sequence[int]]],
    places: dict[int, _Place],
    most: int,
) -> list[list[int]]:
    """Each line as the places that it joins; the longest get none between once there are too many."""
    pairs = [(source, node) for node, sources in edges for source in sources]
    pairs.sort(key=lambda pair: places[pair[1]].row - places[pair[0]].row)
    chains = []
    fresh = -1
    for source, node in pairs:
        chain = [source]
        first, last = places[source].row + 1, places[node].row
        if len(places) + last - first <= most:
            for row in range(first, last):
                places[fresh] = _Place(row, 0.0, [], [])
                chain.append(fresh)
                fresh -= 1
        chain.append(node)
        for upper, lower in pairwise(chain):
            places[upper].below.append(lower)
            places[lower].above.append(upper)
        chains.append(chain)
    return chains


def _order(by_row: list[list[int]], places: Mapping[int, _Place]) -> None:
    """Sort each row by the mean position of its neighbours, down and up in turn."""
    position: dict[int, float] = {}
    for row in by_row:
        position.update({name: index for index, name in enumerate(row)})
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in by_row if down else reversed(by_row):
            keys = {
                name: _mean(
                    places[name].above if down else places[name].below,
                    position,
                    position[name],
                )
                for name in row
            }
            row.sort(key=keys.__getitem__)
            position.update({name: index for index, name in enumerate(row)})


def _mean(
    neighbours: Sequence[int], position: Mapping[int, float], default: float
) -> float:
    if not neighbours:
        return default
    return sum(position[name] for name in neighbours) / len(neighbours)


def _spread(by_row: list[list[int]], places: Mapping[int, _Place]) -> None:
    """Move each row as near to its neighbours as the widths allow, in rounds."""
    for row in by_row:
        _place_row(row, [0.0] * len(row), places)
    for sweep in range(2 * SWEEPS + 1):
        down = sweep % 2 == 0  # also the last, so that chains hang straight
        for row in by_row if down else reversed(by_row):
            goals = []
            for name in row:
                place = places[name]
                near = place.above if down else place.below
                positions = [places[other].x for other in near] or [place.x]
                goals.append(sum(positions) / len(positions))
            _place_row(row, goals, places)


def _place_row(
    row: Sequence[int], goals: Sequence[float], places: Mapping[int, _Place]
) -> None:
    """Set the positions of least squared distance to the goals that keep order and gaps.

    Without the gaps this is isotonic regression, solved by pooling neighbours that violate
    the order.
    """
    offsets = [0.0]
    for left, right in pairwise(row):
        between = (places[left].width + places[right].width) / 2 + GAP
        offsets.append(offsets[-1] + between)
    pools: list[tuple[float, int]] = []  # the mean and the count
    for goal, offset in zip(goals, offsets, strict=False):
        mean, count = goal - offset, 1
        while pools and pools[-1][0] > mean:
            former, size = pools.pop()
            mean = (former * size + mean * count) / (size + count)
            count += size
        pools.append((mean, count))
    means = [mean for mean, count in pools for _ in range(count)]
    for name, mean, offset in zip(row, means, offsets, strict=False):
        places[name].x = mean + offset
