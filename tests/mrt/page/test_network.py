"""Which instructions make a layer, which layers it reads, and where both are drawn."""

import time
from collections import Counter
from itertools import pairwise

import numpy as np

from cvm.program import Input, Instruction, Output, Program, TensorType
from cvm.proof.cost import cost
from cvm.proof.validate import validate
from mrt.evaluate.layers import Layer
from mrt.page.drawing import draw
from mrt.page.layout import GAP, WIDTH, layout
from mrt.page.limits import SOURCES
from mrt.page.network import Node, contracted, network_of, totals


def diamond() -> Program:
    """%1 constant; %2 = x + c; %3 = -%2; %4 = %2 + %2; %5 = %3 + %4; %6 = -%5."""
    instructions = (
        Instruction("add", (0, 1)),
        Instruction("negate", (2,), {"input_zp": 0, "output_zp": 0}),
        Instruction("add", (2, 2)),
        Instruction("add", (3, 4)),
        Instruction("negate", (5,), {"input_zp": 0, "output_zp": 0}),
    )
    kind = TensorType("i32", (1, 4))
    constant = np.ones((1, 4), np.int32)
    return Program(
        (Input("x", kind, -9, 9),), (constant,), instructions, (Output("y", 6),)
    )


def layer(number: int) -> Layer:
    return Layer(number, "add", f"v{number}", "i32", 1.0, -9.0, 9.0)


def test_an_instruction_belongs_to_the_first_layer_computed_from_it():
    program = validate(diamond())
    nodes = network_of(program.program, cost(program), [layer(4), layer(5)])
    assert [node.name for node in nodes] == ["x", "v4", "v5", "y"]
    assert [node.instructions for node in nodes] == [
        Counter(),
        Counter(add=2),  # %2 is read by %3, too, but %4 is before %5
        Counter(negate=1, add=1),
        Counter(negate=1),
    ]
    assert [node.sources for node in nodes] == [set(), {0}, {1}, {2}]
    assert [node.constant_bytes for node in nodes] == [0, 16, 0, 0]
    assert totals(nodes)["cost"] == cost(program).total


def chain(count: int) -> list[Node]:
    return [
        Node(str(place), sources={place - 1} if place else set())
        for place in range(count)
    ]


def test_lines_pass_through_what_is_left_out():
    nodes = chain(6)
    nodes[5].sources.add(0)
    assert contracted(nodes, {0, 3, 5}) == [(0, []), (3, [0]), (5, [0, 3])]


def test_a_node_that_reads_thousands_gets_few_lines():
    nodes = chain(3000)
    nodes[-1].sources = set(range(2999))
    last = contracted(nodes, range(3000))[-1]
    assert last == (2999, list(range(2999 - SOURCES, 2999)))


def test_nodes_of_a_row_stand_apart_and_readers_below():
    edges = [(0, []), (1, [0]), (2, [0]), (3, [0]), (4, [1, 2]), (5, [3, 4, 0])]
    found = layout(edges, 100)
    rows = [found.nodes[node][1] for node in range(6)]
    assert rows == [0, 1, 1, 1, 2, 3]
    places = sorted(found.nodes[node][0] for node in (1, 2, 3))
    assert all(
        right - left >= WIDTH + GAP - 1e-6 for left, right in pairwise(places)
    )
    assert len(found.lines) == 8
    for line in found.lines:
        assert all(upper[1] + 1 == lower[1] for upper, lower in pairwise(line))


def test_a_line_that_would_pass_too_many_rows_goes_straight():
    edges = [
        (place, [place - 1, 0] if place > 1 else [0][:place])
        for place in range(60)
    ]
    found = layout(edges, 70)
    assert max(len(line) for line in found.lines) < 20
    assert any(
        line[-1][1] - line[0][1] > 30 and len(line) == 2 for line in found.lines
    )


def test_a_chain_fills_columns_from_top_to_bottom():
    drawing = draw(chain(40))
    columns = sorted({box.x for box in drawing.boxes})
    assert len(columns) == 4
    assert [box.y for box in drawing.boxes[:10]] == sorted(
        box.y for box in drawing.boxes[:10]
    )
    assert drawing.width < 1100


def test_a_hostile_network_is_drawn_in_seconds():
    nodes = [
        Node(str(place), sources=set(range(max(0, place - 300), place, 3)))
        for place in range(20_000)
    ]
    start = time.perf_counter()
    assert len(draw(nodes).boxes) == 240
    assert time.perf_counter() - start < 20
