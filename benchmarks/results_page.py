"""Writes docs/results.md from the figures of all architectures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.zoo_figures import REFERENCE_LIMIT, SAMPLES, Figures

Column = tuple[str, Callable[[Figures], str]]

HEAD = f"""# The published architectures, in integers

`make results` writes this page. It imports each MXNet symbol as published, fills in seeded random weights
(`--random-weights 0`), converts it with 8-bit weights and activations, calibrated on {SAMPLES} images of noise, proves
the program and runs one more image through it. Random weights say nothing of accuracy; sizes, operations and proofs are
what they would be with trained ones.
"""

SIZES = """## Sizes, proof and answer

Float is 4 bytes for each parameter (BatchNorm's running means and variances are among them); `.cvm` is the whole program
file. The slack is the number of bits by which the tightest sum could still grow before it could leave 32 bits. SNR is
that of the integer answer against the float one by onnxruntime, on the graph as imported; "same class" says whether the
greatest output is the same.{reference}
"""

WORK = """## Operations of one image

In float: multiply-accumulates, and results of other operators that compute (normalisations, activations, sums, pools).
In integers: multiply-accumulates, table reads and element operations as `cvm` counts them (`cvm/SPEC.md`, "Cost"). Products
differ where normalisations became weights, means became products and the other way round.
"""

KINDS = """## Operators of the float graph and instructions of the program

How many of each kind, the most frequent first.
"""


def page(results: Sequence[Figures]) -> str:
    """Return the whole page."""
    converted = [figures for figures in results if figures.failure is None]
    failed = [figures for figures in results if figures.failure is not None]
    sections = [HEAD, f"{len(converted)} of {len(results)} convert.\n"]
    if failed:
        sections.append(
            "".join(
                f"- {figures.name} does not: {figures.failure}\n"
                for figures in failed
            )
        )
    sections += [
        SIZES.format(reference=_reference(converted)),
        _table(_SIZES, converted),
        WORK,
        _table(_WORK, converted),
    ]
    return "\n".join([*sections, KINDS, _table(_KINDS, converted)])


def _reference(converted: Sequence[Figures]) -> str:
    compared = [figures for figures in converted if figures.reference != "-"]
    if not compared:
        return ""
    same = sum(figures.reference == "same" for figures in compared)
    limit = f"{REFERENCE_LIMIT / 1e6:.0f} million multiply-accumulates"
    return f" The reference, asked about those of up to {limit}, gave the engine's very integers for {same} of {len(compared)}."


def _table(columns: Sequence[Column], rows: Sequence[Figures]) -> str:
    lines = [
        [title for title, _ in columns],
        ["---", *["---:"] * (len(columns) - 1)],
    ]
    lines += [[show(row) for _, show in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _millions(count: int) -> str:
    return f"{count / 1e6:,.2f}" if count < 100e6 else f"{count / 1e6:,.0f}"


def _kinds(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{count} {name}" for name, count in ordered)


_SIZES: tuple[Column, ...] = (
    ("architecture", lambda item: item.name),
    ("image", lambda item: f"{item.size}x{item.size}"),
    ("parameters, millions", lambda item: _millions(item.parameters)),
    ("float, MB", lambda item: f"{item.float_bytes / 1e6:.2f}"),
    ("`.cvm`, MB", lambda item: f"{item.program_bytes / 1e6:.2f}"),
    (
        "times smaller",
        lambda item: f"{item.float_bytes / item.program_bytes:.2f}",
    ),
    ("slack, bits", lambda item: item.slack),
    ("SNR, dB", lambda item: f"{item.snr_db:.1f}"),
    ("same class", lambda item: "yes" if item.same_class else "no"),
)
_WORK: tuple[Column, ...] = (
    ("architecture", lambda item: item.name),
    ("float products, millions", lambda item: _millions(item.float_products)),
    ("float others, millions", lambda item: _millions(item.float_others)),
    ("integer products, millions", lambda item: _millions(item.products)),
    (
        "element operations, millions",
        lambda item: _millions(item.element_operations),
    ),
    ("table reads, millions", lambda item: _millions(item.table_reads)),
)
_KINDS: tuple[Column, ...] = (
    ("architecture", lambda item: item.name),
    ("operators", lambda item: _kinds(item.operators)),
    ("instructions", lambda item: _kinds(item.instructions)),
)
