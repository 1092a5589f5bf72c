"""Writes a model as plain ONNX for other tools, and checks it.

The model has an opset that they read, and takes any batch where that is possible.
"""

from mrt.export.export import Exported, export
from mrt.export.opset import DEFAULT_OPSET, OPSETS

__all__ = ["DEFAULT_OPSET", "OPSETS", "Exported", "export"]
