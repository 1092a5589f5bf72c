"""Exported CUDA, compiled for a processor or a GPU, and run on many samples at once."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cvm.export import targets
from cvm.export.c.identifiers import distinct
from cvm.proof.validate import Proven
from tests.support.c_programs import CProgram

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")
ON_CPU = (
    *("g++", "-std=c++20", "-fno-strict-aliasing", "-x", "c++"),
    *WARNINGS,
)


@dataclass(frozen=True)
class CudaProgram(CProgram):
    """An exported program in a folder, with a main of ours that reads samples and writes outputs."""

    samples: int = 1

    @classmethod
    def write_for(cls, form: Proven, folder: Path, samples: int) -> CudaProgram:
        """Write the program, and a main for so many samples."""
        folder.mkdir(parents=True, exist_ok=True)
        artifact = targets.export(form, "cuda", "exported")
        for name, content in artifact.contents.items():
            place = folder / name
            if isinstance(content, str):
                place.write_text(content)
            else:
                place.write_bytes(content)
        (folder / "pipe.c").write_text(_pipe(form, samples))
        return cls(form, folder, samples=samples)

    def compiled(self, compiler: Sequence[str] = ON_CPU) -> Path:
        """Compile and link; return the executable."""
        self._start([*compiler, "-c", "-o", "exported.o", "exported.cu"])
        others = ["exported.o", "exported_constants.c", "pipe.c"]
        linker = "nvcc" if compiler[0] == "nvcc" else "g++"
        for name in others[1:]:
            self._start(["gcc", "-c", "-o", f"{name}.o", name])
        objects = [others[0], *(f"{name}.o" for name in others[1:])]
        self._start([linker, "-o", "exported", *objects])
        return self.folder / "exported"

    def _start(self, command: Sequence[str]) -> None:
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[:4000]


def _pipe(form: Proven, samples: int) -> str:
    """Return a main that reads all samples, runs them at once, and writes all answers."""
    program = form.program
    inputs = distinct(item.name for item in program.inputs)
    outputs = distinct(item.name for item in program.outputs)
    each = f"for (int k = 0; k < {samples}; k++)"
    reads = [
        f"if (fread(in[k].{field}, sizeof in[k].{field}, 1, stdin) != 1) return 100;"
        for field in inputs
    ]
    writes = [
        f"fwrite(out[k].{field}, sizeof out[k].{field}, 1, stdout);"
        for field in outputs
    ]
    return "\n".join(
        [
            '#include <stdio.h>\n#include "exported.h"',
            f"static exported_inputs in[{samples}];",
            f"static exported_outputs out[{samples}];",
            "int main(void)\n{",
            f"{each} {{",
            *reads,
            "}",
            f"int refused = exported_run_many(in, out, {samples});",
            'if (refused < 0) fprintf(stderr, "%s", exported_error());',
            "if (refused) return 1;",
            f"{each} {{",
            *writes,
            "}",
            "exported_close();\nreturn 0;\n}\n",
        ]
    )
