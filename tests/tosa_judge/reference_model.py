"""Runs in the environment of tosa-tools: `python reference_model.py FOLDER COUNT FIRST` runs every N.tosa on N.npz, from FIRST on.

It writes N.out.npz, and to the file `answers` a line of JSON each. It imports nothing of ours.
"""

import json
import sys
from pathlib import Path

import numpy as np
import tosa_reference_model


def answer(folder, number):
    """The status, in TOSA's words, with the outputs in a file; else the error."""
    with np.load(folder / f"{number}.npz") as stored:
        arrays = [stored[f"arr_{i}"] for i in range(len(stored.files))]
    graph = (folder / f"{number}.tosa").read_bytes()
    try:
        outputs, status = tosa_reference_model.run(graph, arrays)
    except (RuntimeError, ValueError) as problem:
        return {"status": "TOSA_ERROR", "error": str(problem)}
    np.savez(folder / f"{number}.out.npz", *outputs)
    return {"status": status.name, "error": ""}


def main(folder, count, first):
    """Answer each, one after the other."""
    with open(folder / "answers", "a") as answers:
        for number in range(first, count):
            print(json.dumps(answer(folder, number)), file=answers, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
