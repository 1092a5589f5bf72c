"""Writes docs/accuracy.md from the figures of all models and ways to quantize."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.accuracy_figures import Figures
from benchmarks.variants import OURS, VARIANTS

HEAD = """# How much accuracy integers cost

`make accuracy` writes this page. Everyone calibrates on the same {samples} images and is judged on the same others: agreement
is the share of images to which the integers give the same best class as onnxruntime in float32, SNR the power of the
float logits over that of the difference. Each row is made in a process of its own from the model's file, peers by their
own recipes, ours by one `mrt convert` with what the row says; time is that of the conversion with everything imported, also
as a multiple of onnxruntime's default quantization run in the moment before, and memory the most that its process held
until then. The last column is the engine's median time for one image over that of onnxruntime in float32, one thread each,
taking turns. The peers' graphs run without onnxruntime's kernels for bytes, which saturate where a processor has no VNNI: what is
compared is the graphs at their best.

{machine}.
"""

TITLES = {item.key: item.title for item in VARIANTS}
RECIPES = {item.key: item.recipe for item in VARIANTS}
COLUMNS = (
    "quantized by",
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
    description = ", ".join(
        f"{name} {value}" for name, value in machine.items() if value != ""
    )
    models = dict.fromkeys(figures.model for figures in results)
    sections = [
        HEAD.format(
            samples=samples, machine=description[:1].upper() + description[1:]
        )
    ]
    sections += [
        _section(
            model, [figures for figures in results if figures.model == model]
        )
        for model in models
    ]
    return "\n".join(sections)


def _section(model: str, results: Sequence[Figures]) -> str:
    measured = [figures for figures in results if figures.failure is None]
    lines = [f"## {model}\n"]
    if measured:
        lines.append(
            f"{measured[0].images} images; float top-1 {100 * measured[0].float_top1:.1f} %.{_verdict(measured)}\n"
        )
    lines += [
        f"| {' | '.join(COLUMNS)} |",
        f"| --- |{' ---: |' * (len(COLUMNS) - 1)}",
    ]
    lines += [f"| {' | '.join(_row(figures))} |" for figures in results]
    return "\n".join(lines) + "\n"


def _verdict(measured: Sequence[Figures]) -> str:
    """Compare ours with the best peer, where both were measured."""
    peers = [
        figures.agreement
        for figures in measured
        if RECIPES[figures.variant] != OURS
    ]
    ours = [
        figures.agreement for figures in measured if figures.variant == OURS
    ]
    if not (peers and ours):
        return ""
    return f" The best peer disagrees with float on {100 - 100 * max(peers):.1f} % of them, ours on {100 - 100 * ours[0]:.1f} %."


def _row(figures: Figures) -> list[str]:
    if figures.failure is not None:
        return [
            f"{TITLES[figures.variant]}: {figures.failure}",
            *["-"] * (len(COLUMNS) - 1),
        ]
    return [
        TITLES[figures.variant],
        f"{100 * figures.top1:.1f}",
        f"{100 * figures.agreement:.1f}",
        f"{figures.snr_db:.1f}",
        f"{figures.seconds:.1f}",
        f"{figures.seconds / figures.yardstick_seconds:.1f}"
        if figures.yardstick_seconds
        else "-",
        f"{figures.peak_bytes / 1e6:.0f}",
        f"{figures.program_bytes / 1e6:.2f}",
        "-" if figures.products is None else f"{figures.products / 1e6:.1f}",
        "-" if figures.engine_share is None else f"{figures.engine_share:.2f}",
    ]
