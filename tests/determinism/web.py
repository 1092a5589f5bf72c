"""The export to the web as a back end: programs as WebAssembly under node, a few of them in one module."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cvm.errors import BadInput
from cvm.export.web.compiler import Compiler
from cvm.program import DTYPES
from cvm.proof.validate import validate
from tests.determinism.builds import Absent
from tests.determinism.programs import Item
from tests.determinism.records import Record
from tests.determinism.worker import Problems
from tests.support import golden
from tests.support.c_programs import merged, prefixed
from tests.support.web_programs import WebProgram

TOGETHER = 16  # programs
KINDS = {"web": False, "web-simd128": True}


def require() -> None:
    """Absent with what this machine lacks."""
    if shutil.which("node") is None:
        raise Absent("node")
    try:
        Compiler.find()
    except BadInput as problem:
        raise Absent(f"compiler: {problem}") from None


def problems(
    items: Sequence[Item], known: dict[str, Record], *, vectors: bool
) -> Problems:
    """Every output whose digest is not the recorded one."""
    found: Problems = []
    for start in range(0, len(items), TOGETHER):
        some = items[start : start + TOGETHER]
        try:
            outputs = _run(some, vectors=vectors)
        except (AssertionError, BadInput) as problem:
            found += [(item.name, 0, str(problem)[:300]) for item in some]
            continue
        for place, item in enumerate(some):
            for name, digest in known[item.name].outputs.items():
                if outputs[f"{place}.{name}"] != digest:
                    why = f"output '{name}' is another"
                    found.append((item.name, 0, why))
    return found


def _run(items: Sequence[Item], *, vectors: bool) -> dict[str, str]:
    """The digest of each output; the reference has no part in it."""
    form = validate(merged([item.program for item in items]))
    with tempfile.TemporaryDirectory() as folder:
        written = WebProgram.write(form, Path(folder), vectors=vectors)
        sample = prefixed([item.sample for item in items])
        (outputs,) = written.run([sample])["outputs"]
    return {
        name: golden.digest(
            np.array(own["values"], DTYPES[own["dtype"]]).reshape(own["shape"])
        ).hex()
        for name, own in outputs.items()
    }
