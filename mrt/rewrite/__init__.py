"""Passes that bring a float graph to canonical form and keep its meaning.

`passes.py` lists them in order.
"""

from mrt.rewrite.onnx_file import save
from mrt.rewrite.passes import STAGES, rewrite

__all__ = ["STAGES", "rewrite", "save"]
