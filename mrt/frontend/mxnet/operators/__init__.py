"""Every MXNet operator that can be converted, by family. To add one: a handler here, a row in the test table."""

from mrt.frontend.mxnet.operators import elementwise, heads, nn, pooling, reduce, shape
from mrt.frontend.mxnet.operators.registry import OPERATORS

__all__ = ["OPERATORS", "elementwise", "heads", "nn", "pooling", "reduce", "shape"]
