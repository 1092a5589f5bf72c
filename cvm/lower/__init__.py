"""Programs as sums, movements and functions of one value: what engines that compute on secret integers need.

A chain of element-wise instructions that depends on one earlier value is one function of that value. The
reference machine tabulates it over the proven interval, so a back end repeats no arithmetic of a chain.
`secret_program` goes on from there to five kinds of steps on integers stored in units.
"""

from cvm.lower.lowering import Lowering, ValueFunction, lower

__all__ = ["Lowering", "ValueFunction", "lower"]
