"""The files of an export to CUDA: header, source, constants, what kernels share, self-test, Makefile, README."""

from __future__ import annotations

from cvm import __version__
from cvm.errors import BadInput
from cvm.export.artifact import Artifact
from cvm.export.c import selftest
from cvm.export.c.folder import MAX_ELEMENTS
from cvm.export.c.identifiers import base_name
from cvm.export.cuda.source import HEADERS, CudaSource, device_text
from cvm.export.refusals import require_small_values
from cvm.export.templates import filled, rows_of
from cvm.file.format import program_id
from cvm.proof.validate import Proven

MOST_BYTES = 2**30
"""Of a sample's values; the caller's structures are not larger."""


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
        "FACTS": rows_of(facts),
    }
    declared = names | source.ports.declarations()
    tested = names | selftest.texts(form, source.ports)
    tested["REASON"] = f"{base}_error()"
    written = {
        f"{base}.h": filled("cuda", "header.h", declared),
        f"{base}.cu": filled("cuda", "source.cu", names | source.texts()),
        f"{base}_constants.c": filled("cuda", "constants.c", names),
        "main.c": filled("c", "main.c", tested),
        "Makefile": filled("cuda", "Makefile", names),
        "README.md": filled("cuda", "README.md", names),
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
