"""The reports for people: a table for each model on the terminal, and one in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.markup import escape
from rich.table import Table

from benchmarks.figures import FAST, OURS, REFERENCE, Measured, Outcome, Row

FOOT = (
    "Median of one image after another, batch 1. Peers take a float image and quantize it inside; "
    "the engine and the reference take integers."
)
DASH = "-"
QUIET = 0.9  # of a core; a run with less was disturbed
HEADS = {  # short names for a wide table
    OURS: "engine",
    FAST: "engine, --fast-on avx2",
    REFERENCE: "reference",
    "onnxruntime-float32": "onnxruntime float32",
    "onnxruntime-int8": "onnxruntime int8",
    "openvino-int8": "OpenVINO int8",
}


def number(value: float | None, form: str = ".2f", unit: str = "") -> str:
    """Return the value as text, or a dash where there is none."""
    return DASH if value is None else f"{value:{form}}{unit}"


def percent(value: float | None) -> str:
    """Return a share of 1 in hundredths."""
    return DASH if value is None else f"{100 * value:.0f} %"


def milliseconds(value: float | None) -> str:
    """Return a time with three digits or more, and at most two decimals."""
    return number(
        value,
        ".2f"
        if value is None or value < 100
        else ".1f"
        if value < 1000
        else ".0f",
    )


def part_table(model: str, part: Measured) -> Table:
    """Return every contender on one model and number of threads; 80 columns, notes below."""
    peak = f"int8 peak {number(part.peak, '.0f', ' giga-MAC/s')}"
    remarks = escape(
        "\n".join(
            f"{HEADS[row.contender]}: {row.note}"
            for row in part.rows
            if row.note
        )
    )
    title = f"{model}, {threads_text(part.threads)}, {peak}"
    table = Table(
        title=title,
        caption=remarks,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("contender", no_wrap=True)
    for head in ("ms", "engine/it", "GMAC/s", "of peak", "cores", "SNR dB"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in part.rows:
        table.add_row(
            HEADS[row.contender],
            milliseconds(row.median_ms),
            number(part.ratio(row.contender)),
            number(part.rate(row.contender), ".1f"),
            percent(part.share(row.contender)),
            number(row.busy_cores),
            number(row.snr_db, ".1f"),
        )
    return table


def model_table(outcomes: Sequence[Outcome], threads: Sequence[int]) -> Table:
    """Return the figures of each model: loading, memory, and the gain of more threads."""
    table = Table(
        "model", title="loading, memory, threads", title_justify="left"
    )
    for head in model_heads(threads):
        table.add_column(head, justify="right")
    for outcome in outcomes:
        table.add_row(outcome.model, *model_cells(outcome, threads))
    return table


def model_heads(threads: Sequence[int]) -> list[str]:
    """Return the columns of `model_cells`."""
    gains = [
        f"gain of {threads_text(count)} / of the peak"
        for count in threads
        if count != 1
    ]
    return ["load and validate", "peak memory", *gains]


def model_cells(outcome: Outcome, threads: Sequence[int]) -> list[str]:
    """Return seconds and megabytes of a fresh process, and gains from more threads.

    The gains are those of our engine and of the peak.
    """
    needs = outcome.footprint
    memory = f"{needs.peak_bytes / 1e6:.0f} MB" + (
        "" if needs.ran_on == OURS else f" ({needs.ran_on})"
    )
    gains = [
        _gain_cell(outcome.gain(count), outcome.peak_gain(count))
        for count in threads
        if count != 1
    ]
    return [f"{needs.load_s:.2f} s", memory, *gains]


def markdown(
    machine: Mapping[str, str | int],
    outcomes: Sequence[Outcome],
    threads: Sequence[int],
) -> str:
    """Return the report in Markdown.

    It has the times with our engine's ratio to each, the figures of `model_table`, the
    machine and the notes.
    """
    contenders = [row.contender for row in outcomes[0].measured[0].rows]
    heads = [
        "model",
        "threads",
        *(_time_head(name) for name in contenders),
        "giga-MAC/s",
        "of the int8 peak",
    ]
    rows = [
        [
            outcome.model,
            str(measured.threads),
            *(_time_cell(measured, name) for name in contenders),
            *_rate_cells(measured),
        ]
        for outcome in outcomes
        for measured in outcome.measured
    ]
    model_rows = [
        [outcome.model, *model_cells(outcome, threads)] for outcome in outcomes
    ]
    paragraphs = [
        grid(heads, rows),
        grid(["model", *model_heads(threads)], model_rows),
        f"{FOOT} In brackets: the engine's time divided by that one's.",
        disturbed(outcomes),
        "\n".join(notes(outcomes)),
        ", ".join(f"{name} {value}" for name, value in machine.items()) + ".\n",
    ]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def notes(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the notes about contenders, each once."""
    rows = [
        row
        for outcome in outcomes
        for measured in outcome.measured
        for row in measured.rows
        if row.note
    ]
    return list(
        dict.fromkeys(f"- {HEADS[row.contender]}: {row.note}" for row in rows)
    )


def disturbed(outcomes: Sequence[Outcome]) -> str:
    """Return a warning about other work on the machine, or nothing.

    A run on one thread that had much less than a core to itself was disturbed.
    """
    shares = [
        row.busy_cores
        for outcome in outcomes
        for row in _alone(outcome)
        if row.busy_cores is not None
    ]
    if not shares or min(shares) >= QUIET:
        return ""
    return f"Something else was running: one thread got as little as {percent(min(shares))} of a core. Measure again."


def _alone(outcome: Outcome) -> tuple[Row, ...]:
    measured = outcome.on(1)
    return measured.rows if measured else ()


def grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table: the first column aligns left, figures align right."""
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', '/') for cell in line)} |"
        for line in lines
    )


def threads_text(count: int) -> str:
    """Return the number of threads in words: 1 thread, 2 threads."""
    return f"{count} thread" + ("s" if count != 1 else "")


def _gain_cell(ours: float | None, of_peak: float | None) -> str:
    if ours is None or of_peak is None:
        return number(ours)
    return f"{ours:.2f} / {of_peak:.2f} = {percent(ours / of_peak)}"


def _time_head(contender: str) -> str:
    return f"{HEADS[contender]}, ms"


def _time_cell(measured: Measured, contender: str) -> str:
    time, ratio = measured.time(contender), measured.ratio(contender)
    return milliseconds(time) + (
        "" if ratio is None or contender == OURS else f" ({number(ratio)})"
    )


def _rate_cells(measured: Measured) -> list[str]:
    return [number(measured.rate(OURS), ".1f"), percent(measured.share(OURS))]
