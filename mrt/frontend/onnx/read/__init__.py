"""From bytes to a checked protobuf: the one place where onnx.ModelProto is at home."""
