"""Writes docs/accuracy.md from the figures of all models and ways to quantise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.accuracy_figures import Figures
from benchmarks.variants import OURS, VARIANTS

HEAD = """# How much accuracy integers cost

`make accuracy` writes this page. Everyone calibrates on the same {samples} images and is judged on the same others: agreement
is the share of images to which the integers give the same best class as onnxruntime in float32, SNR the power of the
float logits over that of the difference. Each row is made in a process of its own from the model's file, peers by their
own recipes, ours by one `mrt convert` with what the row says; time is that of the conversion with everything imported, also
as a multiple of onnxruntime's default quantisation run in the moment before, and memory the most that its process held
until then. The last column is the engine's median time for one image over that of onnxruntime in float32, one thread each,
taking turns. The peers' graphs run without onnxruntime's kernels for bytes, which saturate where a processor has no VNNI: what is
compared is the graphs at their best.

{machine}.
"""

TITLES = {item.key: item.title for item in VARIANTS}
RECIPES = {item.key: item.recipe for item in VARIANTS}
COLUMNS = (
    "quantised by",
    "top-1, %",
    "agreement, %",
    "SNR, dB",
    "time, s",
    "of onnxruntime's",
    "memory, MB",
    "file, MB",
    "products, millions",
    "engine's time, of float32's",
)


def page(
    results: Sequence[Figures], machine: Mapping[str, str | int], samples: int
) -> str:
    """Return the whole page."""
    said = ", ".join(
        f"{name} {value}" for name, value in machine.items() if value != ""
    )
    models = dict.fromkeys(item.model for item in results)
    parts = [HEAD.format(samples=samples, machine=said[:1].upper() + said[1:])]
    parts += [
        _section(model, [item for item in results if item.model == model])
        for model in models
    ]
    return "\n".join(parts)


def _section(model: str, results: Sequence[Figures]) -> str:
    good = [item for item in results if item.failure is None]
    lines = [f"## {model}\n"]
    if good:
        lines.append(
            f"{good[0].images} images; float top-1 {100 * good[0].float_top1:.1f} %.{_verdict(good)}\n"
        )
    lines += [
        f"| {' | '.join(COLUMNS)} |",
        f"| --- |{' ---: |' * (len(COLUMNS) - 1)}",
    ]
    lines += [f"| {' | '.join(_row(item))} |" for item in results]
    return "\n".join(lines) + "\n"


def _verdict(good: Sequence[Figures]) -> str:
    """Compare ours with the best peer, where both were measured."""
    peers = [item.agreement for item in good if RECIPES[item.variant] != OURS]
    ours = [item.agreement for item in good if item.variant == OURS]
    if not (peers and ours):
        return ""
    return f" The best peer disagrees with float on {100 - 100 * max(peers):.1f} % of them, ours on {100 - 100 * ours[0]:.1f} %."


def _row(item: Figures) -> list[str]:
    if item.failure is not None:
        return [
            f"{TITLES[item.variant]}: {item.failure}",
            *["-"] * (len(COLUMNS) - 1),
        ]
    return [
        TITLES[item.variant],
        f"{100 * item.top1:.1f}",
        f"{100 * item.agreement:.1f}",
        f"{item.snr_db:.1f}",
        f"{item.seconds:.1f}",
        f"{item.seconds / item.yardstick_seconds:.1f}"
        if item.yardstick_seconds
        else "-",
        f"{item.peak_bytes / 1e6:.0f}",
        f"{item.program_bytes / 1e6:.2f}",
        "-" if item.products is None else f"{item.products / 1e6:.1f}",
        "-" if item.engine_share is None else f"{item.engine_share:.2f}",
    ]
