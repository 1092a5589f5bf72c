"""The files of an export to CUDA: header, source, constants, what kernels share, self-test, Makefile, README."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from string import Template

from cvm import __version__
from cvm.errors import BadInput
from cvm.export.artifact import Artifact
from cvm.export.c import selftest
from cvm.export.c.folder import MAX_ELEMENTS
from cvm.export.c.folder import filled as filled_for_c
from cvm.export.c.identifiers import base_name
from cvm.export.cuda.source import HEADERS, CudaSource, device_text
from cvm.export.refusals import require_small_values
from cvm.file.format import program_id
from cvm.proof.validate import Proven

MOST_BYTES = (
    2**30
)  # of a sample's values; the caller's structures are not larger


def write(form: Proven, name: str) -> Artifact:
    """The program as kernels of CUDA, answering with the bytes of the reference machine."""
    require_small_values(form, "cuda", MAX_ELEMENTS)
    base = base_name(name)
    source = CudaSource.of(form)
    _require_small_samples(source)
    facts = {
        "instructions": len(form.program.instructions),
        "kernels": len(source.kernels),
        "constant_bytes": len(source.constants),
        "sample_bytes": source.layout.size,
    }
    names: dict[str, str] = {
        "NAME": base,
        "GUARD": f"{base.upper()}_H",
        "VERSION": __version__,
        "TITLE": f"Program {program_id(form.program)}",
        "BYTES": str(len(source.constants)),
        "FACTS": "\n".join(
            f"| {k.replace('_', ' ')} | {v:,} |" for k, v in facts.items()
        ),
    }
    declared = names | source.ports.declarations()
    tested = names | selftest.texts(form, source.ports)
    tested["REASON"] = f"{base}_error()"
    written = {
        f"{base}.h": _filled("header.h", declared),
        f"{base}.cu": _filled("source.cu", names | source.texts()),
        f"{base}_constants.c": _filled("constants.c", names),
        "main.c": filled_for_c("main.c", tested),
        "Makefile": _filled("Makefile", names),
        "README.md": _filled("README.md", names),
    }
    shared = {header: device_text(header) for header in HEADERS}
    binaries = {f"{base}.constants": source.constants or bytes(1)}
    return Artifact(written | shared, facts, binaries)


def _require_small_samples(source: CudaSource) -> None:
    """Refuse a sample that is larger than the steps between rows that CUDA copies."""
    if source.layout.size > MOST_BYTES:
        raise BadInput(
            f"the values of a sample take {source.layout.size:,} bytes at once; the target cuda takes at most {MOST_BYTES:,}"
        )


def _filled(name: str, values: Mapping[str, str]) -> str:
    place = files("cvm.export.cuda").joinpath("templates", name)
    return Template(place.read_text(encoding="ascii")).substitute(values)
