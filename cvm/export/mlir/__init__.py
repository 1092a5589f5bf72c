"""The target mlir: a module in MLIR's generic form, of TOSA operators, and of arith and linalg where TOSA lacks the meaning."""

from cvm.export.mlir.folder import write
from cvm.export.mlir.table import TABLE

__all__ = ["TABLE", "write"]
