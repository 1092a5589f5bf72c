"""What the templates of the page are given: numbers as people read them, and places in pixels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mrt.calibrate.preprocessing import Preprocessing
from mrt.calibrate.samples import Sample
from mrt.evaluate.evaluation import Evaluation
from mrt.page.distributions import BARS, Distribution, Numbers
from mrt.page.drawing import percent
from mrt.page.facts import Facts
from mrt.page.limits import OUTPUTS, WORKERS, shown
from mrt.page.network import Node, totals
from mrt.page.thumbnails import is_picture, thumbnail

# -- accuracy ----------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """A share of the samples with its 95 % interval; places in per cent of the axis."""

    name: str
    side: str  # float, integer or both
    text: str
    interval: str
    at: float
    low: float
    high: float


@dataclass(frozen=True)
class Axis:
    """The shares that were measured, on an axis that begins where it must."""

    shares: Sequence[Share]
    marks: Sequence[tuple[float, str]]  # in per cent of the axis


def accuracy(report: Evaluation) -> Axis | None:
    """The shares on one axis; None if there are none."""
    rows = [
        ("top-1", "float", report.of_float.top1),
        ("top-1", "integers", report.of_integer.top1),
        ("top-5", "float", report.of_float.top5),
        ("top-5", "integers", report.of_integer.top5),
        ("same answer", "both", report.agreement),
    ]
    measured = [
        (name, side, share)
        for name, side, share in rows
        if share is not None and (name != "top-5" or report.has_top5)
    ]
    if not measured:
        return None
    lows = [report.confidence_interval(share)[0] for _, _, share in measured]
    start = max(0, int(100 * min(lows) - 2) // 10 * 10) / 100
    shares = []
    for name, side, share in measured:
        low, high = report.confidence_interval(share)
        span = f"{100 * low:.1f} to {100 * high:.1f} %"
        at, left, right = (
            _on_axis(number, start) for number in (share, low, high)
        )
        shares.append(
            Share(name, side, f"{100 * share:.1f} %", span, at, left, right)
        )
    step = 2 if start >= 0.9 else 10 if start >= 0.5 else 20
    marks = [
        (_on_axis(mark / 100, start), f"{mark} %")
        for mark in range(round(100 * start), 101, step)
    ]
    return Axis(shares, marks)


def _on_axis(share: float, start: float) -> float:
    return round(100 * (share - start) / (1 - start), 2)


@dataclass(frozen=True)
class Figure:
    """One more figure: its name, what it is in float, and in integers."""

    name: str
    of_float: str
    of_integer: str


def figures(report: Evaluation) -> list[Figure]:
    """What is no share of the samples: signal to noise, equal elements, clipped inputs, the user's metric."""
    rows = []
    sides = (report.of_float.metric, report.of_integer.metric)
    if sides[0] is not None and sides[1] is not None:
        rows.append(Figure("metric", f"{sides[0]:.6g}", f"{sides[1]:.6g}"))
    for name, decibels in report.snr_db.items():
        text = "no difference" if decibels is None else f"{decibels:.1f} dB"
        rows.append(Figure(f"signal to noise of {shown(name)}", "", text))
    for name, share in report.equal.items():
        text = f"{100 * share:.2f} %"
        rows.append(Figure(f"equal elements of {shown(name)}", "", text))
    for name, clipping in report.clipped.items():
        if clipping.count:
            text = f"{clipping.count:,} of {clipping.total:,}"
            rows.append(Figure(f"values of {shown(name)} clipped", "", text))
    return rows[:OUTPUTS]


# -- work --------------------------------------------------------------------------


@dataclass(frozen=True)
class Worker:
    """A layer's share of products, bytes of constants and cost: text, and length in per cent of the longest."""

    name: str
    kind: str
    number: int | None
    texts: tuple[str, str, str]
    lengths: tuple[float, float, float]


def work(nodes: Sequence[Node]) -> list[Worker]:
    """The layers that cost most, and the sum of the others."""
    sums = totals(nodes)
    ranked = sorted(
        (node for node in nodes if not node.is_input),
        key=lambda node: -node.work.cost,
    )
    rows = [
        (
            shown(node.name or "(not compared)"),
            node.main,
            None if node.layer is None else node.layer.number,
            _shares([node], sums),
        )
        for node in ranked[:WORKERS]
    ]
    rest = ranked[WORKERS:]
    if rest:
        rows.append((f"{len(rest):,} others", "", None, _shares(rest, sums)))
    longest = [
        max((row[3][place] for row in rows[:WORKERS]), default=0.0) or 1.0
        for place in range(3)
    ]
    return [
        Worker(
            name,
            kind,
            number,
            (percent(shares[0]), percent(shares[1]), percent(shares[2])),
            (
                _length(shares[0], longest[0]),
                _length(shares[1], longest[1]),
                _length(shares[2], longest[2]),
            ),
        )
        for name, kind, number, shares in rows
    ]


def _length(share: float, longest: float) -> float:
    """A bar's length in per cent of the longest; none for the sum of the others, which is no layer."""
    return 0.0 if share > longest else round(100 * share / longest, 1)


def _shares(
    nodes: Sequence[Node], sums: Mapping[str, int]
) -> tuple[float, float, float]:
    node_sums = totals(nodes)
    products, size, cost = (
        node_sums[key] / max(sums[key], 1)
        for key in ("products", "bytes", "cost")
    )
    return products, size, cost


# -- answers -----------------------------------------------------------------------


@dataclass(frozen=True)
class Changed:
    """A sample whose answer changed; `picture` is a data URI, or nothing."""

    name: str
    picture: str
    label: str
    of_float: str
    of_integer: str
    outcome: str  # lost, gained, or nothing


def changed(facts: Facts) -> list[Changed]:
    """The samples of which float was surest."""
    picture = _picture_of(facts)
    named = _class_namer(facts.subject.class_names)
    rows = []
    for answer in facts.answers.surest():
        outcome = ""
        if answer.label is not None and answer.label in (
            answer.of_float,
            answer.of_integer,
        ):
            outcome = "lost" if answer.label == answer.of_float else "gained"
        rows.append(
            Changed(
                shown(facts.name_of(answer.index)),
                picture(answer.sample),
                "" if answer.label is None else named(answer.label),
                named(answer.of_float),
                named(answer.of_integer),
                outcome,
            )
        )
    return rows


def _picture_of(facts: Facts) -> Callable[[Sample], str]:
    """The function that draws a sample: by the first input that is a picture."""
    prepared = facts.subject.preprocessing
    for input_ in facts.subject.program.program.inputs:
        name = input_.name

        def draw(sample: Sample, name: str = name) -> str:
            return thumbnail(sample[name], prepared.get(name, Preprocessing()))

        # A model of pictures' bytes takes them in the shape of the program.
        if is_picture(input_.type.shape):
            return draw
    return lambda sample: ""


def _class_namer(names: Sequence[str]) -> Callable[[int], str]:
    def named(number: int) -> str:
        if 0 <= number < len(names):
            return f"{number} {shown(names[number], 60)}"
        return str(number)

    return named


# -- distributions -----------------------------------------------------------------

WIDTH, TALL = 320, 96


@dataclass(frozen=True)
class Plot:
    """A histogram: paths of both sides, where the integers end, and marks on the axis."""

    number: int
    name: str
    instruction: str
    snr: str
    clipped: str
    of_float: str
    of_integer: str
    ends: Sequence[float]
    marks: Sequence[tuple[float, str, str]]  # place, text, anchor


def plot(distribution: Distribution) -> Plot:
    """Draw one distribution."""
    layer = distribution.layer
    low, high = distribution.hull()
    of_float, of_integer = distribution.bars()
    bounds = [
        round(WIDTH * (end - low) / (high - low), 1)
        for end in (layer.low, layer.high)
        if low <= end <= high
    ]
    marks = [(0.0, f"{low:.3g}", "start"), (float(WIDTH), f"{high:.3g}", "end")]
    if low < 0 < high and 0.2 < -low / (high - low) < 0.8:
        marks.append((WIDTH * -low / (high - low), "0", "middle"))
    return Plot(
        layer.number,
        shown(layer.source),
        layer.instruction,
        "exact" if layer.snr_db is None else f"{layer.snr_db:.1f} dB",
        percent(layer.clipped) if layer.clipped else "none",
        _outline(of_float),
        _outline(of_integer),
        bounds,
        marks,
    )


def _outline(heights: Numbers) -> str:
    """Steps from bar to bar, closed along the axis."""
    step = WIDTH / BARS
    parts = [f"M0 {TALL}"]
    level = None
    for index, height in enumerate(heights):
        y = f"{TALL - TALL * height:.1f}"
        if y != level:
            parts.append(f"H{index * step:g}V{y}")
            level = y
    parts.append(f"H{WIDTH}V{TALL}Z")
    return "".join(parts)
