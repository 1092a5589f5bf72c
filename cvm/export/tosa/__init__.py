"""The target tosa: a file for Arm's Tensor Operator Set Architecture, of its integer profile and, for 16 bits, EXT-INT16."""

from cvm.export.tosa.folder import write
from cvm.export.tosa.table import TABLE

__all__ = ["TABLE", "write"]
