"""MXNet symbol JSON and parameter files, read natively, become ONNX operators with the same meaning."""

from mrt.frontend.mxnet.load import find_params, load_mxnet, model_sha256
from mrt.frontend.mxnet.operators import OPERATORS

__all__ = ["OPERATORS", "find_params", "load_mxnet", "model_sha256"]
