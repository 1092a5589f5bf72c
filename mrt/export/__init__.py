"""A model as plain ONNX for other tools: at the opset they read, for any batch where that is possible, and checked."""

from mrt.export.export import Exported, export
from mrt.export.opset import DEFAULT_OPSET, OPSETS

__all__ = ["DEFAULT_OPSET", "OPSETS", "Exported", "export"]
