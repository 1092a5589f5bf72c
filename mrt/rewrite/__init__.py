"""Float graph to simpler float graph; each pass keeps the meaning."""
