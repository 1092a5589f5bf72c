"""Whether every back end gives the bytes that are written down: `make determinism`.

`digests.json` holds, for each program, what it must give. Programs are made anew each time, from seeds and stored tables.
"""
