"""The target onnx: a graph of integer operators that onnxruntime's CPU kernels run to the bytes of the reference."""

from cvm.export.onnx.folder import write
from cvm.export.onnx.table import TABLE

__all__ = ["TABLE", "write"]
