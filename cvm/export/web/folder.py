"""The files of an export to the web: a package of JavaScript with the program's WebAssembly in it, and its source."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from importlib.resources import files

from cvm import __version__
from cvm.errors import BadInput
from cvm.export.artifact import Artifact
from cvm.export.c import library
from cvm.export.c.source import Ports
from cvm.export.templates import filled, rows_of
from cvm.export.web.compiler import Compiler, command
from cvm.export.web.facts import facts_of
from cvm.export.web.page import page
from cvm.export.web.vectors import with_vectors
from cvm.file.format import program_id
from cvm.program import DTYPES
from cvm.proof.validate import Proven

MODULES = ("sha256.js", "tensors.js", "receipt.js", "machine.js")
PACKAGE = (*MODULES, "index.js", "index.d.ts", "test.js")
MOST_BYTES = 2**31  # of memory; a page of 32 bits has twice as much at most


def write(form: Proven, name: str, *, vectors: bool = True) -> Artifact:
    """The program as WebAssembly, with instructions on 128 bits if `vectors`, in a package without dependencies."""
    compiler = Compiler.find()
    source = c_files(form, name)
    base = next(iter(source)).removesuffix(".c")
    if vectors:
        source[f"{base}.c"] = with_vectors(source[f"{base}.c"])
    module = compiler.build(source, vectors=vectors)
    count = len(form.program.instructions)
    facts = {"instructions": count, "wasm_bytes": len(module)}
    modules = {name: _text("package", name) for name in PACKAGE}
    modules["program.js"] = _program_js(form, module)
    return Artifact(
        {
            "package.json": _package_json(base),
            "README.md": _readme(form, base, facts),
            "index.html": page(base, count, modules),
            **modules,
            **source,
        },
        facts,
    )


def _program_js(form: Proven, module: bytes) -> str:
    """What JavaScript needs of the program, and the module, as constants; no text in them can end a script."""
    facts = json.dumps(facts_of(form), indent=1).replace("<", "\\u003c")
    inner = base64.b64encode(module).decode("ascii")
    return (
        f"// The program as cvm {__version__} wrote it: what it takes and gives, and its WebAssembly in base64.\n"
        f'export const FACTS = {facts};\nexport const WASM = "{inner}";\n'
    )


def c_files(form: Proven, name: str) -> dict[str, str]:
    """The sources of the module: the program's, and functions that JavaScript calls."""
    artifact = library(form, name)
    _require_memory(form, artifact)
    header, body = artifact.files
    ports = Ports.of(form)
    names = {
        "NAME": body.removesuffix(".c"),
        "INPUTS": _cases("inputs", ports.inputs),
        "OUTPUTS": _cases("outputs", ports.outputs),
    }
    glue = filled("web", "glue.c", names)
    return {
        body: artifact.files[body],
        header: artifact.files[header],
        "glue.c": glue,
    }


def _cases(structure: str, fields: tuple[str, ...]) -> str:
    return "\n".join(
        f"    case {number}: return {structure}.{field};"
        for number, field in enumerate(fields)
    )


def _require_memory(form: Proven, artifact: Artifact) -> None:
    """BadInput if constants, values, inputs and outputs do not fit."""
    program = form.program
    ports = [port.type for port in program.inputs]
    ports += [form.types[port.value] for port in program.outputs]
    total = sum(
        type_.elements * DTYPES[type_.dtype].itemsize for type_ in ports
    )
    total += artifact.facts["constant_bytes"] + artifact.facts["arena_bytes"]
    if total > MOST_BYTES:
        raise BadInput(
            f"the program needs {total:,} bytes of memory; the target web has {MOST_BYTES:,}"
        )


def _package_json(base: str) -> str:
    content = {
        "name": base.lower().replace("_", "-").strip("-"),
        "version": "1.0.0",
        "private": True,
        "type": "module",
        "exports": {".": {"types": "./index.d.ts", "default": "./index.js"}},
        "types": "./index.d.ts",
        "scripts": {"test": "node test.js"},
    }
    return json.dumps(content, indent=2) + "\n"


def _readme(form: Proven, base: str, facts: Mapping[str, int]) -> str:
    inputs = form.program.inputs
    named = ", ".join(json.dumps(input_.name) + ": array" for input_ in inputs)
    names: dict[str, str] = {
        "NAME": base,
        "TITLE": f"Program {program_id(form.program)}",
        "CALL": "array" if len(inputs) == 1 else f"{{ {named} }}",
        "COMMAND": command(base),
        "FACTS": rows_of(facts),
    }
    return filled("web", "README.md", names)


def _text(*parts: str) -> str:
    place = files("cvm.export.web").joinpath(*parts)
    return place.read_text(encoding="ascii")
