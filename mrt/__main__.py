"""Runs the `mrt` command as `python -m mrt`."""

from mrt.cli import main

main()
