"""Float graph to simpler float graph; each pass keeps the meaning. `passes.py` lists the passes in order."""

from mrt.rewrite.passes import STAGES, rewrite, save

__all__ = ["STAGES", "rewrite", "save"]
