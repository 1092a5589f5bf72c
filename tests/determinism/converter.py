"""Convert by several command lines in one process, of any Python that has what `mrt` needs: converter.py JOBS.

JOBS is a file of JSON: the words of each command line. Nothing of the tests is imported, for they need more.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from click.testing import CliRunner

from mrt.cli import cli


def main(jobs: Path) -> None:
    for words in json.loads(jobs.read_text(encoding="utf-8")):
        result = CliRunner().invoke(cli, ["convert", *words])
        if result.exit_code:
            sys.exit(f"mrt convert {' '.join(words)}\n{result.output}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
