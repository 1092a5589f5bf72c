"""BatchNormalization, layer normalizations, Softmax and its masks."""
