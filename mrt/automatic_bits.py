"""Conversions that choose their bits: 8, and more where the program with 8 is not good, unless somebody gives them.

What is chosen is what the advice on that program names, so it was measured before. The
model is converted anew with it, refinement included, and the better program is kept. Where
that one is not good either, its own advice is followed. Where it is no better, or is
refused, the next dearer options are tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cvm.errors import BadInput, Invalid
from mrt import pipeline
from mrt.advice import flags_of, is_better
from mrt.config import Config
from mrt.conversion import Conversion
from mrt.errors import BadOption, MrtError
from mrt.evaluate.verdict import Verdict
from mrt.progress import Progress
from mrt.quality import RewritingCheck, verdict_beside
from mrt.quantize.options import AUTO
from mrt.refine.options import RefineOptions
from mrt.rewrite.file_grids import has_file_grids
from mrt.settings import PLACES, with_options
from mrt.tune.price import engine_time

Options = Mapping[str, Any]  # of `mrt.convert`

MOST_TRIES = 4
"""Conversions after the first, each of which takes as long: fewer stages of refinement, and 16 bits of streams, of all
values, and 15 of weights, if each of the cheaper ones fails."""
OF_BITS = tuple(name for name in PLACES["quantization"] if "bits" in name)
"""Options that say how many bits there are."""
DECIDED = (*OF_BITS, "refine", "extra_products", "config")
"""Options beside which nothing is chosen: of what is decided on samples, somebody has asked for something else."""


def take_auto(options: dict[str, Any], **beside: Any) -> bool:
    """Take a `bits` of "auto" out of the options, and return whether bits are to be chosen.

    They are for "auto", and where nothing else decides them. BadOption for "auto" where something `beside` it, or
    another option, says how many bits there are.
    """
    if options.get("bits") != AUTO:
        given = [options.get(name) for name in DECIDED]
        return not any((*given, *beside.values()))
    del options["bits"]
    given_bits = {name: options.get(name) for name in OF_BITS}
    for name, value in {**given_bits, **beside}.items():
        if value is not None:
            flag = name.replace("_", "-")
            raise BadOption(f"--bits {AUTO} and --{flag}: {_GIVE_ONE}")
    return True


def chooses_bits(
    config: Config, *, is_asked: bool, is_free: bool, **beside: Any
) -> bool:
    """Return whether bits are to be chosen: where an option or the config file asks for it, or `is_free` from others.

    BadOption where something `beside` what the file asks for says how many bits there are, too, or they cannot be chosen.
    """
    asked = f"--bits {AUTO}"
    if config.automatic_bits:
        asked = f'[quantization] bits = "{AUTO}" of the config'
        for name, value in beside.items():
            if value is not None:
                raise BadOption(f"{asked} and --{name}: {_GIVE_ONE}")
    elif not is_asked:
        return is_free
    _check(config, asked)
    return True


_GIVE_ONE = "give one of them, since both say how many bits there are"


def _check(config: Config, asked: str) -> None:
    """Raise BadOption where a config gives bits, or there is nothing to measure a program on."""
    bits = config.quantization
    plain = type(bits)()
    if bits.layers or any(
        getattr(bits, name) != getattr(plain, name)
        for name in OF_BITS
        if name != "bits"
    ):
        raise BadOption(f"{asked} and the bits of a --config: give one of them")
    if config.calibration_data.path is None:
        raise BadOption(
            f"{asked} needs samples to measure on: --data, or a --config whose [calibration] names some"
        )


def convert(config: Config, *, progress: Progress) -> Conversion:
    """Convert with the config's bits; where the program is not good, with what helps, if anything does."""
    config = replace(config, automatic_bits=False)  # as those that are tried
    rewriting = RewritingCheck()
    best = pipeline.convert(
        config, table=None, progress=progress, rewriting=rewriting
    )
    first, sentence = best, best.quality.sentence
    notes: list[str] = []
    untried = _untried(best, config)
    for _ in range(MOST_TRIES):
        if not untried:
            break
        options = untried.pop(0)
        tried = _tried(options, best, config, progress, rewriting=rewriting)
        if isinstance(tried, Conversion):
            best = tried
            untried = _untried(best, config)
        else:
            notes.append(tried)
            best = _without(options, best)
    if best.chosen:
        notes.append(
            f"{flags_of(best.chosen)} was chosen, since without it: {sentence}; "
            f"the engine takes about {_time_beside(best, first)} (--bits 8 converts without it)"
        )
    best.remarks.notes += notes
    return best


def _time_beside(best: Conversion, first: Conversion) -> str:
    """Return how long the engine takes for the best program, beside the first."""
    times = engine_time(best.proven) / engine_time(first.proven)
    rounded = f"{times:.1f}"
    return "as long" if rounded == "1.0" else f"{rounded} times as long"


def _tried(
    options: Options,
    best: Conversion,
    config: Config,
    progress: Progress,
    *,
    rewriting: RewritingCheck,
) -> Conversion | str:
    """Return the conversion with options; a note on what came of it where the best one so far stays the best."""
    flags = flags_of(options)
    once_more = f"once more, with {flags}"
    progress(once_more, 0, 1)
    try:
        conversion = pipeline.convert(
            with_options(config, options),
            table=None,
            progress=progress,
            rewriting=rewriting,
        )
        better = _is_better(conversion, best, progress)
    except (MrtError, Invalid, BadInput) as problem:
        return f"{flags} was not taken: {problem}"
    finally:
        progress(once_more, 1, 1)
    if better:
        return _choosing(conversion, options)
    return f"{flags} was tried, refinement included, and is no better: {conversion.quality.sentence}"


def _untried(conversion: Conversion, config: Config) -> list[Options]:
    """Return what to try: fewer stages of refinement, the bits that help most, and dearer ones.

    Stages are left out only if that may be good or nothing else helps, and stay where somebody chose them.
    """
    advice = conversion.quality.advice
    if advice is None or has_file_grids(conversion.model.model):
        return []
    of_stages = [it for it in advice.remedies if it.verdict_is_final]
    of_bits = [it for it in advice.remedies if not it.verdict_is_final]
    if config.refinement != RefineOptions():
        of_stages = []
    if of_bits:
        of_stages = [
            remedy for remedy in of_stages if remedy.verdict.has_good_figures
        ]
    remedies = [*of_stages[-1:], *of_bits[-1:]]
    return [remedy.options for remedy in remedies] + list(advice.dearer)


def _without(options: Options, conversion: Conversion) -> Conversion:
    """Take back the advice to do what was done in vain."""
    advice = conversion.quality.advice
    assert advice is not None  # which the options are of
    return conversion.with_advice(advice.without(options))


def _choosing(conversion: Conversion, options: Options) -> Conversion:
    """Return the conversion with these options as chosen, which belong to what else may help."""
    chosen = replace(conversion, chosen=options)
    advice = conversion.quality.advice
    if advice is None:
        return chosen
    return chosen.with_advice(advice.beside(options))


def _is_better(
    second: Conversion, first: Conversion, progress: Progress
) -> bool:
    """Compare the verdicts, on the same samples: a dear program is measured on fewer."""
    before, after = first.quality.verdict, second.quality.verdict
    if before is None or after is None:
        return False
    if before.samples != after.samples:
        before = _on_samples_of(second, first, progress)
    return is_better(after, before)


def _on_samples_of(
    second: Conversion, first: Conversion, progress: Progress
) -> Verdict:
    """Measure the first program on the samples of the second."""
    verdict = verdict_beside(
        first.model.model,
        first.proven,
        second.proven,
        first.config,
        progress,
    )
    assert verdict is not None  # there were samples for both
    return verdict
