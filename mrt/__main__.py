"""`python -m mrt` is the `mrt` command."""

from mrt.cli import main

main()
