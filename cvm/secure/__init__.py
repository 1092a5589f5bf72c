"""Runs a program among parties of which none holds an input in clear: multi-party computation, by SPU.

SPU 0.9.5 needs an older jax and numpy, so that it runs in an environment of its own: `process.py`, `parties.py`,
`compiled.py` and `spu_link.py` are imported there alone.
"""
