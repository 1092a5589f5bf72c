"""Programs exported to the web, run by node or by a page: integers in and out as JSON, with the receipt."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.export.web.compiler import Compiler
from cvm.export.web.folder import write
from cvm.file.format import program_id
from cvm.program import DTYPES, IntArray
from cvm.proof.cost import cost
from cvm.proof.validate import Proven
from cvm.reference import interpreter
from cvm.runtime.receipt import Receipt, SampleReceipt, digests_of

RUNNER = """\
import { readFileSync } from "node:fs";
import { load, receiptText } from "./index.js";
const program = await load();
const { samples, options } = JSON.parse(readFileSync(0, "utf8"));
const answers = samples.map((sample) => program.run(sample, options));
const plain = ({ shape, dtype, values }) => ({ shape, dtype, values: [...values] });
const outputs = answers.map(({ outputs }) =>
  Object.fromEntries(Object.entries(outputs).map(([name, tensor]) => [name, plain(tensor)])));
console.log(JSON.stringify({ outputs, receipts: answers.map(({ receipt }) => receiptText(receipt)) }));
"""

ON_PAGE = """\
const { outputs } = cvm.program.run(%s);
const plain = ({ shape, dtype, values }) => ({ shape, dtype, values: [...values] });
return Object.fromEntries(Object.entries(outputs).map(([name, tensor]) => [name, plain(tensor)]));
"""
Arrays = Mapping[str, IntArray]


class Tab(Protocol):
    """A tab of a browser."""

    def open(self, page: Path) -> None: ...

    def run(self, script: str) -> Any: ...


def needs_web() -> pytest.MarkDecorator:
    """Skip where a tool is missing, with what to install."""
    why = "" if shutil.which("node") else "there is no node"
    try:
        Compiler.find()
    except BadInput as problem:
        why = str(problem)
    return pytest.mark.skipif(bool(why), reason=why)


def node(folder: Path, *words: str, sent: str = "") -> str:
    """Run node in a folder; return what it printed."""
    done = subprocess.run(
        ["node", *words], cwd=folder, input=sent, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-4000:])
    return done.stdout


@dataclass(frozen=True)
class WebProgram:
    """An exported package in a folder, with a runner of ours beside it."""

    form: Proven
    folder: Path

    @classmethod
    def write(
        cls, form: Proven, folder: Path, *, vectors: bool = True
    ) -> WebProgram:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in write(
            form, "exported", vectors=vectors
        ).files.items():
            (folder / name).write_text(text, encoding="ascii")
        (folder / "runner.js").write_text(RUNNER)
        return cls(form, folder)

    def run(
        self, samples: Sequence[Mapping[str, Any]], **options: bool
    ) -> dict[str, Any]:
        """Return the outputs of each run and the text of its receipt."""
        plain = list(map(_plain, samples))
        sent = json.dumps({"samples": plain, "options": options})
        found: dict[str, Any] = json.loads(
            node(self.folder, "runner.js", sent=sent)
        )
        return found

    @property
    def module(self) -> bytes:
        """The WebAssembly in the package."""
        text = (self.folder / "program.js").read_text(encoding="ascii")
        return base64.b64decode(text.partition('WASM = "')[2].partition('"')[0])

    def answer(self, sample: Arrays) -> dict[str, IntArray]:
        """Return what node gives."""
        (outputs,) = self.run([sample])["outputs"]
        return _arrays(outputs)

    def shown(self, tab: Tab, sample: Arrays) -> dict[str, IntArray]:
        """Return what the page gives in a browser."""
        tab.open(self.folder / "index.html")
        return _arrays(tab.run(ON_PAGE % json.dumps(_plain(sample))))

    def differing(self, samples: Sequence[Arrays]) -> list[str]:
        """Return the outputs, and the receipts, that differ from the reference's in any sample."""
        names = []
        found = self.run(samples)
        for number, sample in enumerate(samples):
            expected = interpreter.run(self.form, dict(sample))
            for name, array in expected.items():
                own = found["outputs"][number][name]
                same = _array(own).tobytes() == array.tobytes()
                if not same or tuple(own["shape"]) != array.shape:
                    names.append(name)
            stated = json.loads(found["receipts"][number])["root"]
            if stated != self._receipt(sample, expected).root.hex():
                names.append(f"receipt {number}")
        return names

    def _receipt(self, sample: Arrays, expected: Arrays) -> Receipt:
        entry = SampleReceipt(
            digests_of(sample), digests_of(expected), cost(self.form).total
        )
        return Receipt.of(program_id(self.form.program), None, [entry])


def _plain(sample: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(array).tolist() for name, array in sample.items()}


def _arrays(outputs: Mapping[str, Any]) -> dict[str, IntArray]:
    return {name: _array(own) for name, own in outputs.items()}


def _array(own: Mapping[str, Any]) -> IntArray:
    return np.array(own["values"], DTYPES[own["dtype"]]).reshape(own["shape"])
