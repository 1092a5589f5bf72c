"""The target `c`: portable C99 without floating point, malloc or a C library."""

from cvm.export.c.folder import library, write
from cvm.export.c.table import TABLE

__all__ = ["TABLE", "library", "write"]
