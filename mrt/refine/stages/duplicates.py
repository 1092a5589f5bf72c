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
        extra_products=state.extra_products,
        table=state.table,
    )
    add_duplicates(state.model, choice.channels)
    notes = _notes(choice, state.extra_products)
    return replace(state, duplicates=choice.channels, notes=notes)


def _notes(choice: Choice, extra_products: float | None) -> tuple[str, ...]:
    """Say what the copies remove and cost."""
    count = sum(map(len, choice.channels.values()))
    gain = (
        f"take off {choice.noise_removed:.0%} of the noise of activations "
        f"for {choice.products_added:.1%} more products"
    )
    if count and extra_products is None:
        return (
            f"duplicates of {count} channels {gain} (--refine without duplicates leaves them out)",
        )
    if count:
        return (
            f"{count} copies of channels {gain} (--extra-products {extra_products:g})",
        )
    if extra_products:
        return (
            f"--extra-products {extra_products:g} adds no copies of channels: none is known to take off enough noise for its "
            "products (that of large images, and in front of some operators, is not measured)",
        )
    return ()


DUPLICATES = RefineStage("duplicates", Needs.SAMPLES, decide)
