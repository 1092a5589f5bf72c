"""The commands of `mrt`, by subject; `mrt/cli.py` gathers them. Only these print and set the exit code."""
