"""Element-wise functions of one quantized value, fused into one lookup table."""
