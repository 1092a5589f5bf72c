"""Programs as functions of jax: each instruction once, in integers, for all that XLA compiles for. Needs jax."""
