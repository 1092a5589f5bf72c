"""Constraints of a proof system: a program as rows a * b = c over a prime field, and the witness of a sample."""

from cvm.export.r1cs.folder import write

__all__ = ["write"]
