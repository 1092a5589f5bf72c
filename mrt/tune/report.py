"""Reports the upgrades that a search chose, and their costs."""

from __future__ import annotations

from mrt.tune.candidates import Candidate
from mrt.tune.search import TuningResult
from mrt.tune.target import describe

WIDEST_NAME = 60
FEW = 16  # with fewer held-back samples, the report warns


def outcome_lines(outcome: TuningResult) -> list[str]:
    """A table of what was raised, and the program before and after."""
    doubt = ", too few to be sure" if outcome.samples < FEW else ""
    lines = [
        f"mixed precision for {outcome.target}, on {outcome.samples} held-back samples{doubt}:"
    ]
    lines += _table(outcome)
    lines += [
        f"  before: {describe(outcome.before)}",
        f"  after:  {describe(outcome.after)}",
        "  "
        + "; ".join(
            _change(name, before, after)
            for name, before, after in (
                (
                    "engine's time, estimated",
                    outcome.price_before.engine,
                    outcome.price_after.engine,
                ),
                (
                    "multiply-accumulates",
                    outcome.price_before.work.multiply_accumulates,
                    outcome.price_after.work.multiply_accumulates,
                ),
                (
                    "bytes moved",
                    outcome.price_before.work.bytes_moved,
                    outcome.price_after.work.bytes_moved,
                ),
                (
                    "bytes of constants",
                    outcome.price_before.constant_bytes,
                    outcome.price_after.constant_bytes,
                ),
            )
        ),
    ]
    return lines


def _table(outcome: TuningResult) -> list[str]:
    if not outcome.upgrades:
        return ["  nothing had to be raised"]
    rows = [("bits", "gain dB", "time", "MACs", "layer")]
    for upgrade in outcome.upgrades:
        candidate, work = upgrade.candidate, upgrade.work
        rows.append(
            (
                f"{candidate.before} -> {candidate.after}",
                f"{upgrade.gain_db:.2f}",
                f"{upgrade.price / max(outcome.price_before.engine, 1):+.1%}",
                f"{work.multiply_accumulates:+,}",
                _name(candidate),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        "  "
        + "  ".join(
            [
                *(
                    cell.rjust(width)
                    for cell, width in zip(row, widths, strict=False)
                ),
                row[4],
            ]
        )
        for row in rows
    ]


def _name(candidate: Candidate) -> str:
    """Return the layer, its kind, and the number of others in the same candidate."""
    name = candidate.names[0]
    shown = name if len(name) <= WIDEST_NAME else f"{name[:WIDEST_NAME]}..."
    more = (
        f" and {len(candidate.names) - 1} with it"
        if len(candidate.names) > 1
        else ""
    )
    return f"{'weights of' if candidate.weights else 'value'} {shown}{more}"


def _change(name: str, before: int, after: int) -> str:
    return f"{name} {before:,} -> {after:,} ({100 * (after - before) / max(before, 1):+.1f} %)"
