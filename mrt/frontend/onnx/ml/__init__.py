"""Operators of the domain ai.onnx.ml: trees, support vectors, encoders, scalers."""
