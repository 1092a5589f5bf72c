"""Resolution of inputs, outputs, branches, loops and sequences to plain nodes."""
