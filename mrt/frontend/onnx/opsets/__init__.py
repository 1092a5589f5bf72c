"""Conversion of operators of every opset, of experiments and of onnxruntime to opset 20."""
