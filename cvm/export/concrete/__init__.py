"""The target concrete: steps for Concrete, Zama's compiler of fully homomorphic encryption, and a program that runs them."""

from cvm.export.concrete.folder import write

__all__ = ["write"]
