"""Duplicates channels for which 8 bits are too coarse (`mrt.duplicate.add_duplicates`)."""

from mrt.duplicate.choose import ENOUGH_SAMPLES, Choice, choose_duplicates
from mrt.duplicate.provenance import duplicates_provenance, read_duplicates

__all__ = [
    "ENOUGH_SAMPLES",
    "Choice",
    "choose_duplicates",
    "duplicates_provenance",
    "read_duplicates",
]
