"""Models that are quantized already, read as the float models that they stand for."""
