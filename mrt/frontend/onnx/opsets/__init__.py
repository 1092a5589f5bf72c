"""Operators of every opset, of experiments and of onnxruntime, in the form of opset 20."""
