"""Folds a program: fewer instructions that give the same integers.

Equal branches of one level become one instruction on all their elements, products of
one input become one product, and movements are followed rather than written.

    fold(program)               the folded program; the same if folding saves nothing
    first_difference(one, two)  what differs on random inputs: nothing, unless there is a fault
"""

from mrt.fold.check import first_difference
from mrt.fold.folded import Folded
from mrt.fold.search import fold

__all__ = ["Folded", "first_difference", "fold"]
