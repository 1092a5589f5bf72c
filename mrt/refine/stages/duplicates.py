"""`duplicates`: adds a second copy of each channel for which 8 bits are too coarse.

This is outlier channel splitting (Zhao et al., arXiv 1901.09504); `mrt.duplicate` does
it.
"""

from dataclasses import replace

from mrt.duplicate import choose_duplicates
from mrt.duplicate.add_duplicates import add_duplicates
from mrt.refine.stages.stage import ModelState, Needs, Stage


def decide(state: ModelState) -> ModelState:
    """Choose channels by the noise that they cause, and add their copies to the model."""
    duplicates = choose_duplicates(
        state.model,
        state.samples,
        state.options,
        by_channel=state.scales_by_channel,
    )
    add_duplicates(state.model, duplicates)
    return replace(state, duplicates=duplicates)


DUPLICATES = Stage("duplicates", Needs.SAMPLES, decide)
