"""MXNet symbol JSON and parameter files, read natively, become ONNX operators with the same meaning."""

from mrt.frontend.mxnet.files import find_params
from mrt.frontend.mxnet.load import Loaded, Source, load_mxnet, read_mxnet
from mrt.frontend.mxnet.operators import OPERATORS

__all__ = [
    "OPERATORS",
    "Loaded",
    "Source",
    "find_params",
    "load_mxnet",
    "read_mxnet",
]
