"""`python -m cvm` is the `cvm` command."""

from cvm.cli import main

main()
