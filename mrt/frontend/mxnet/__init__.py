"""MXNet symbol JSON and parameter files, read natively, become ONNX operators with the same meaning."""
