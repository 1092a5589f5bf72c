"""The `cvm` command, as a console script and as `python -m cvm`: it imports the rest where an interrupt is caught."""

import sys


def main() -> None:
    """Run the command."""
    try:
        from cvm.cli import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write("cvm: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
