"""Reading of bytes as a checked protobuf; few other steps work on onnx.ModelProto."""
