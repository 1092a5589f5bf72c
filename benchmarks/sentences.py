"""Compares our and the peers' ways to run a sentence encoder: time, and what becomes of its embeddings.

`python -m benchmarks.sentences` (make sentences) writes docs/sentences.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
import numpy as np
from rich.console import Console

from benchmarks import older
from benchmarks import sentence_models as models
from benchmarks.cache import CACHE, ROOT
from benchmarks.machine import describe
from benchmarks.measure import WARM_UPS, Turn, alternate, warmed
from benchmarks.peers import Unavailable
from benchmarks.sentence_models import Array, Encoder

FLOAT, DYNAMIC = "onnxruntime, float32", "onnxruntime, dynamic int8"
ENCODERS: Mapping[str, Callable[[], Encoder]] = {
    FLOAT: lambda: models.by_onnxruntime(models.float_path()),
    DYNAMIC: lambda: models.by_onnxruntime(models.dynamic_path()),
    "OpenVINO, its own precision": lambda: models.by_openvino(
        models.float_path()
    ),
    "OpenVINO, NNCF int8": lambda: models.by_openvino(models.nncf_path()),
    "**mrt**": models.ours,
    "mrt, `--product-bits 8`": lambda: models.ours(product_bits=8),
    "mrt, `--activation-bits 16`": lambda: models.ours(activation_bits=16),
}
ON_AVX2: Mapping[str, Callable[[], Encoder]] = {
    "mrt, `--fast-on avx2`": lambda: models.ours(fast_on="avx2"),
}

HEAD = """# A sentence encoder in integers

`make sentences` writes this page: all-MiniLM-L6-v2, a BERT of 6 layers, on sentences of 32 tokens, calibrated on 100 of them and
judged on 200 others. The cosine is that of each embedding with float32's, in the mean; the nearest neighbour is that among the
200 sentences. Times are medians on one thread, all contenders taking turns, as multiples of onnxruntime's dynamic int8. What is
timed begins with tokens for the peers and with the integers of the input for the engine.

{machine}.

| run by | time, of dynamic int8's | cosine | same nearest neighbour, % |
| --- | ---: | ---: | ---: |
"""


@dataclass(frozen=True)
class Row:
    """One way to run the encoder."""

    title: str
    milliseconds: float
    cosine: float
    same_neighbour: float


@click.command()
@click.option(
    "--repetitions", default=60, show_default=True, type=click.IntRange(1)
)
@click.option(
    "--output",
    default=CACHE / f"sentences_{older.held()}.md"
    if older.held() is not None
    else ROOT / "docs" / "sentences.md",
    show_default="docs/sentences.md, with --isa build/bench/sentences_ISA.md",
    type=click.Path(dir_okay=False, path_type=Path),
)
@older.option
def main(repetitions: int, output: Path) -> None:
    """Run the encoder in every way on the same sentences, and write the table."""
    console = Console()
    reason = models.absent()
    if reason is not None:
        console.print(
            f"{output} stays as it is: {reason}",
            highlight=False,
            soft_wrap=True,
        )
        return
    with console.status("measuring"):
        rows = measure(_ready(console), repetitions)
    text = page(rows, describe())
    output.write_text(text, encoding="utf-8")
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _ready(console: Console) -> dict[str, Encoder]:
    """Return the encoders that can run here; print the reasons of the others."""
    ready = {}
    encoders = {**ENCODERS, **(ON_AVX2 if older.held() == "avx2" else {})}
    for title, make in encoders.items():
        try:
            ready[title] = make()
        except Unavailable as problem:
            console.print(
                f"left out: {title}: {problem}", highlight=False, soft_wrap=True
            )
    return ready


def measure(encoders: Mapping[str, Encoder], repetitions: int) -> list[Row]:
    """Embed the judged sentences in every way, and time the first of them."""
    judged = models.sentences(models.JUDGED)
    embeddings = {
        title: np.concatenate([encoder.embed(sentence) for sentence in judged])
        for title, encoder in encoders.items()
    }
    turns = {}
    for title, encoder in encoders.items():
        call = encoder.prepare(judged[0])
        for _ in range(WARM_UPS):
            call()
        older.check()
        turns[title] = Turn(warmed(call), repetitions)
    readings = alternate(turns, repetitions)
    exact = embeddings[FLOAT]
    return [
        Row(
            title,
            1e3 * median(readings[title]),
            cosine(embedding, exact),
            same_neighbours(embedding, exact),
        )
        for title, embedding in embeddings.items()
    ]


def cosine(found: Array, exact: Array) -> float:
    """Return the mean cosine of the rows of two arrays [sentences,channels]."""
    return float((_unit(found) * _unit(exact)).sum(axis=1).mean())


def same_neighbours(found: Array, exact: Array) -> float:
    """Return the share of sentences that have the same nearest neighbour among the others."""
    return float((_nearest(found) == _nearest(exact)).mean())


def _nearest(embeddings: Array) -> Array:
    unit = _unit(embeddings)
    likeness = unit @ unit.T
    np.fill_diagonal(likeness, -2)
    return likeness.argmax(axis=1)


def _unit(embeddings: Array) -> Array:
    return embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)


def page(rows: list[Row], machine: Mapping[str, str | int]) -> str:
    """Return the whole page."""
    facts = [
        f"{name} {value}" for name, value in machine.items() if value != ""
    ]
    described = ", ".join(facts)
    head = HEAD.format(machine=described[:1].upper() + described[1:])
    base = next(row.milliseconds for row in rows if row.title == DYNAMIC)
    return head + "".join(_line(row, base) for row in rows)


def _line(row: Row, base: float) -> str:
    columns = (
        row.title,
        f"{row.milliseconds / base:.2f}",
        f"{row.cosine:.4f}",
        f"{100 * row.same_neighbour:.1f}",
    )
    return f"| {' | '.join(columns)} |\n"


if __name__ == "__main__":
    main()
