"""All cases of one run: for each name of the registry those its maker gives, the rest chains."""

from __future__ import annotations

from mrt.frontend.mxnet import OPERATORS
from mrt.frontend.mxnet.operators.aliases import OTHER_NAMES, known_name
from tests.mxnet_judge.case import Case
from tests.mxnet_judge.chains import chain
from tests.mxnet_judge.draw import Draw
from tests.mxnet_judge.makers import MAKERS
from tests.mxnet_judge.sketch import Sketch

SEED = 20
LEAST = 2000  # cases of a whole run
OF_ANOTHER_NAME = (
    3  # cases of each name that another interface of MXNet gives to an operator
)
CHAINS = 0.15  # the least share of chains


def single(name: str, number: int, seed: int = SEED) -> Case:
    """One use of one operator; every output is a head."""
    draw = Draw(name, number, seed)
    drawn = MAKERS[known_name(name)].make(draw, known_name(name))
    sketch = Sketch(draw)
    edges = [sketch.add(operand) for operand in drawn.operands]
    node, _ = sketch.node(name, edges, drawn.attributes)
    return sketch.case(
        f"{name}:{number}", [(node, output) for output in range(drawn.outputs)]
    )


def names() -> list[str]:
    """The operators of the registry that have a maker, and the other names of these."""
    return [
        name
        for name in (*OPERATORS, *OTHER_NAMES)
        if known_name(name) in MAKERS
    ]


def count(name: str) -> int:
    """How many cases one name gets."""
    return MAKERS[name].cases if name in MAKERS else OF_ANOTHER_NAME


def cases(seed: int = SEED) -> list[Case]:
    """Every name at least once, chains last."""
    found = [
        single(name, number, seed)
        for name in names()
        for number in range(count(name))
    ]
    chains = max(LEAST - len(found), int(len(found) * CHAINS))
    return [*found, *(one(f"chain:{number}", seed) for number in range(chains))]


def one(identity: str, seed: int = SEED) -> Case:
    """The case that has this id."""
    name, number = identity.rsplit(":", 1)
    return (
        chain(Draw("chain", int(number), seed), identity)
        if name == "chain"
        else single(name, int(number), seed)
    )
