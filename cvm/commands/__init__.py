"""The commands of `cvm`, by subject; `cvm/cli.py` gathers them. Only these print and set the exit code."""
