"""Reading of models that are quantized already, as the float models that they represent."""
