"""The reader of MXNet's symbol and parameter files, which converts them to an ONNX graph."""

from mrt.frontend.mxnet.files import find_params
from mrt.frontend.mxnet.load import Loaded, ModelSource, load_mxnet, read_mxnet
from mrt.frontend.mxnet.operators import OPERATORS

__all__ = [
    "OPERATORS",
    "Loaded",
    "ModelSource",
    "find_params",
    "load_mxnet",
    "read_mxnet",
]
