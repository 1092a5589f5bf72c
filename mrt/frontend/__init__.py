"""A foreign file becomes one float graph (`onnx_ir.Model`) or a named refusal."""
