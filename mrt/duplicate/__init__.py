"""Which channels say too little in 8 bits for what depends on them, and so get a twin (`mrt.duplicate.add_duplicates`)."""

from mrt.duplicate.choose import ENOUGH_SAMPLES, choose_twins
from mrt.duplicate.provenance import read_twins, twins_provenance

__all__ = ["ENOUGH_SAMPLES", "choose_twins", "read_twins", "twins_provenance"]
