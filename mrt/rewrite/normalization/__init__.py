"""BatchNormalization, layer norms, softmax and its masks."""
