"""`duplicates`: adds a second copy of each channel for which 8 bits are too coarse.

This is outlier channel splitting (Zhao et al., arXiv 1901.09504); `mrt.duplicate` does
it.
"""

from dataclasses import replace

from mrt.duplicate import Choice, choose_duplicates
from mrt.duplicate.add_duplicates import add_duplicates
from mrt.refine.stages.stage import ModelState, Needs, RefineStage


def decide(state: ModelState) -> ModelState:
    """Choose channels by the noise that they cause, and add their copies to the model."""
    choice = choose_duplicates(
        state.model,
        state.samples,
        state.options,
        by_channel=state.scales_by_channel,
    )
    add_duplicates(state.model, choice.channels)
    notes = (_note(choice),) if choice.channels else ()
    return replace(state, duplicates=choice.channels, notes=notes)


def _note(choice: Choice) -> str:
    count = sum(map(len, choice.channels.values()))
    return (
        f"duplicates of {count} channels take off {choice.noise_removed:.0%} of the noise of activations "
        f"for {choice.products_added:.1%} more products (--refine without duplicates leaves them out)"
    )


DUPLICATES = RefineStage("duplicates", Needs.SAMPLES, decide)
