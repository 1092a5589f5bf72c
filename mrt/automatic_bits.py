"""Conversions that choose their bits: 8, and more where the program with 8 is not good, unless somebody gives them.

What is chosen is what the advice on that program names, so it was measured before. The
model is converted anew with it, refinement included, and the better program is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cvm.proof.cost import cost
from mrt import pipeline
from mrt.advice import Remedy, is_better
from mrt.config import Config
from mrt.conversion import Conversion
from mrt.errors import BadOption, MrtError
from mrt.progress import Progress
from mrt.rewrite.file_grids import has_file_grids
from mrt.settings import PLACES, with_options

AUTO = "auto"
CHOSEN = ("weight_bits", "activation_bits")
"""Options that are chosen, so that nobody else may give them."""


def take_automatic(options: dict[str, Any], **beside: Any) -> bool:
    """Whether `bits` are to be chosen, which are taken out then.

    BadOption where something `beside` them, or another option, says how many bits there are.
    """
    if options.get("bits") != AUTO:
        return False
    del options["bits"]
    given = {name: options.get(name) for name in CHOSEN} | beside
    for name, value in given.items():
        if value is not None:
            raise BadOption(
                f"bits: {AUTO}, and {name.replace('_', '-')}: give one of them, since both say how many bits there are"
            )
    return True


def are_open(options: Mapping[str, Any], **beside: Any) -> bool:
    """Whether nothing that is given concerns bits, nor is there a config, which decides them; so they may be chosen."""
    given = [options.get(name) for name in PLACES["quantization"]]
    return not any((*given, options.get("config"), *beside.values()))


def require_samples(config: Config) -> None:
    """Raise BadOption where there is nothing to measure a program on."""
    if config.calibration_data.path is None:
        raise BadOption(
            f"--bits {AUTO} needs samples to measure on: --data, or a --config whose [calibration] names some"
        )


def convert(config: Config, *, progress: Progress) -> Conversion:
    """Convert with the config's bits; where the program is not good, with what helps most, if anything does."""
    first = pipeline.convert(config, table=None, progress=progress)
    advice = first.quality.advice
    if advice is None or not advice.remedies:
        return first
    if has_file_grids(first.model.model):  # the file decides
        return first
    remedy = advice.remedies[-1]
    try:
        second = pipeline.convert(
            with_options(config, _as_values(remedy.options)),
            table=None,
            progress=progress,
        )
    except MrtError as problem:
        first.remarks.notes.append(f"with {remedy.flags}: {problem}")
        return first
    return _better(first, second, remedy)


def _as_values(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with lists in place of names with commas."""
    return {
        name: value.split(",") if isinstance(value, str) else value
        for name, value in options.items()
    }


def _better(
    first: Conversion, second: Conversion, remedy: Remedy
) -> Conversion:
    """Keep the second program if its verdict is better, with a note on the first."""
    before, after = first.quality.verdict, second.quality.verdict
    assert before is not None
    if after is None or not is_better(after, before):
        return first
    times = cost(second.proven).total / cost(first.proven).total
    second.remarks.notes.append(
        f"{remedy.flags} was chosen, since without it: {before.sentence}; "
        f"it makes the program's cost {times:.2f} times as great (--bits 8 leaves it away)"
    )
    return second
