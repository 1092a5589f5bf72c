"""Folds a program: fewer instructions that give the same integers.

Equal branches of one level become one instruction on all their elements, products of
one input become one product, and movements are followed rather than written.

    fold(program)  the folded program, or the same if folding saves nothing
"""

from mrt.fold.search import Folded, fold

__all__ = ["Folded", "fold"]
