"""Real MXNet as the judge of the front end: seeded random symbols, run by mxnet and by what `mrt` makes of them."""
