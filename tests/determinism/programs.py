"""The programs whose bytes are written down: converted demo models, random ones of several kinds, conformance vectors.

Whoever changes a generator so that it makes other programs of the same seeds records anew, and says so.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from click.testing import CliRunner

from cvm.file import format as file_format
from cvm.program import DTYPES, IntArray, Program
from mrt.cli import cli
from tests.determinism import vectors
from tests.support.cvm_programs import (
    MAKERS,
    Frozen,
    random_inputs,
    random_program,
)
from tests.support.image_networks import image_network
from tests.support.plan_programs import branching_program

ROOT = Path(__file__).resolve().parent.parent.parent
TABLES = ROOT / "tests" / "end_to_end" / "golden"
REFINED = Path(__file__).parent / "tables" / "resnet_digits8.refined.json"
MODELS = ("resnet_digits8", "lenet_digits28")
OPTIONS = {
    "8bit": "",
    "shift": "--scales shift",
    "16bit": "--activation-bits 16",
    "4bit": "--bits 4 --scheme affine",
    "7bit-shift": "--activation-bits 7 --scales shift",
}
GROUPS = (
    "models",
    "random",
    "branches",
    "networks",
    "detections",
    "interpolations",
    "vectors",
)
DETECTIONS = ("nms", "concat", "gather", "maximum")
INTERPOLATIONS = ("interpolate", "rescale", "cast", "add", "table")
# Of the random ones: a new instruction changes no program.
KINDS = tuple(name for name in MAKERS if name not in ("nms", "interpolate"))


@dataclass(frozen=True)
class Item:
    """A program, one sample for it, and the column of the matrix that it counts in."""

    name: str
    program: Program
    sample: dict[str, IntArray]

    @property
    def group(self) -> str:
        return group_of(self.name)


def group_of(name: str) -> str:
    """models/lenet_digits28-8bit is one of models."""
    return name.partition("/")[0]


def all_items(only: str = "") -> list[Item]:
    """Always the same, in the same order; or those of them that have `only` in their names."""
    return [make() for name, make in _makers().items() if only in name]


def _makers() -> dict[str, Callable[[], Item]]:
    models = {
        f"models/{model}-{name}": (_model,)
        for model in MODELS
        for name in OPTIONS
    }
    models[f"models/{MODELS[0]}-refined"] = (_model,)
    random = {f"random/{seed:03}": (_random, seed) for seed in range(100)}
    branches = {f"branches/{seed:03}": (_branches, seed) for seed in range(40)}
    networks = {f"networks/{seed:03}": (_network, seed) for seed in range(60)}
    detections = {
        f"detections/{seed:03}": (_detections, seed) for seed in range(20)
    }
    interpolations = {
        f"interpolations/{seed:03}": (_interpolations, seed)
        for seed in range(20)
    }
    every = models | random | branches | networks | detections | interpolations
    every |= {
        f"vectors/{name}": (_vectors, name) for name in vectors.instructions()
    }
    return {
        name: partial(how[0], name, *how[1:]) for name, how in every.items()
    }


def _model(name: str) -> Item:
    program = _converted(words_of(name))
    return Item(name, program, anything(program, 1))


def _random(name: str, seed: int) -> Item:
    program = random_program(Frozen(seed), 8 + seed % 30, KINDS)
    return Item(name, program, random_inputs(program, Frozen(seed)))


def _detections(name: str, seed: int) -> Item:
    program = random_program(Frozen(2000 + seed), 2 + seed % 8, DETECTIONS)
    return Item(name, program, anything(program, seed))


def _interpolations(name: str, seed: int) -> Item:
    program = random_program(Frozen(3000 + seed), 3 + seed % 8, INTERPOLATIONS)
    return Item(name, program, random_inputs(program, Frozen(seed)))


def _vectors(name: str, instruction: str) -> Item:
    return Item(name, *vectors.program_of(instruction))


def _branches(name: str, seed: int) -> Item:
    program = branching_program(Frozen(seed))
    return Item(name, program, random_inputs(program, Frozen(seed)))


def _network(name: str, seed: int) -> Item:
    program = image_network(Frozen(1000 + seed))
    return Item(name, program, anything(program, seed))


def words_of(name: str) -> list[str]:
    """What `mrt convert` is told to make a program of the models: its table, and options."""
    model, _, how = name.removeprefix("models/").partition("-")
    table = REFINED if how == "refined" else TABLES / f"{model}.table.json"
    words = ("--config", f"{ROOT}/configs/{model}.toml", "--table", f"{table}")
    return [*words, *OPTIONS.get(how, "").split()]


def _converted(words: list[str]) -> Program:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.cvm"
        result = CliRunner().invoke(cli, ["convert", *words, "-o", str(path)])
        if result.exit_code:
            raise RuntimeError(f"{' '.join(words)}: {result.output}")
        return file_format.read(path)


def anything(program: Program, seed: int) -> dict[str, IntArray]:
    """Every integer of the declared intervals is as likely as any other."""
    random = Frozen(seed)
    return {
        item.name: random.integers(
            item.lo, item.hi + 1, item.type.shape
        ).astype(DTYPES[item.type.dtype])
        for item in program.inputs
    }
