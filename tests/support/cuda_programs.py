"""Exported CUDA, compiled for a processor or a GPU: all samples run at once."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cvm.export import targets
from cvm.export.c.identifiers import distinct
from cvm.file import disk
from cvm.proof.validate import Proven
from tests.support.c_programs import CProgram

ON_CPU = (
    *("-std=c++20", "-fno-strict-aliasing", "-x", "c++"),
    *("-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"),
)
ON_GPU = ("-std=c++20", "-Werror", "all-warnings")


@dataclass(frozen=True)
class CudaProgram(CProgram):
    """An exported program in a folder, with a main of ours that reads samples and writes outputs."""

    @classmethod
    def write(cls, form: Proven, folder: Path) -> CudaProgram:
        artifact = targets.export(form, "cuda", "exported")
        disk.write_folder(folder, artifact.contents)
        (folder / "pipe.c").write_text(_pipe(form))
        return cls(form, folder)

    def build(self, compiler: str, *flags: str, main: str = "pipe.c") -> Path:
        """Compile with all warnings as errors; return the executable."""
        kernels = self.kernels(compiler, *flags)
        others = [main, "exported_constants.c"]
        for name in others:
            self._start(["gcc", "-c", "-o", f"{name}.o", name])
        objects = [kernels, *(f"{name}.o" for name in others)]
        sanitizers = [flag for flag in flags if flag.startswith("-fsanitize")]
        binary = self.folder / f"{compiler}_program"
        self._start([compiler, *sanitizers, *objects, "-o", binary.name])
        return binary

    def kernels(self, compiler: str, *flags: str) -> str:
        """Compile the program alone; return the object's name."""
        own = ON_GPU if compiler == "nvcc" else ON_CPU
        name = f"{compiler}.o"
        self._start([compiler, *own, *flags, "-c", "-o", name, "exported.cu"])
        return name

    def _start(self, command: Sequence[str]) -> None:
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True
        )
        assert done.returncode == 0, (done.stderr + done.stdout)[:4000]


def _pipe(form: Proven) -> str:
    """Return a main that reads samples to the end, runs them at once, and writes all answers."""
    program = form.program
    inputs = distinct(item.name for item in program.inputs)
    outputs = distinct(item.name for item in program.outputs)
    reads = [
        f"if (fread(in[count].{field}, sizeof in->{field}, 1, stdin) != 1) break;"
        for field in inputs
    ]
    writes = [
        f"fwrite(out[k].{field}, sizeof out->{field}, 1, stdout);"
        for field in outputs
    ]
    return "\n".join(
        [
            '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include "exported.h"',
            "int main(void)\n{",
            "int count = 0, refused;",
            "exported_inputs *in = 0;",
            "exported_outputs *out;",
            "for (;; count++) {",
            "in = realloc(in, (count + 1) * sizeof *in);",
            *(reads or ["if (count == 1) break;"]),
            "}",
            "out = malloc(count * sizeof *out);",
            "memset(out, 90, count * sizeof *out);",
            "refused = exported_run_many(in, out, count);",
            'if (refused < 0) fprintf(stderr, "%s", exported_error());',
            'if (refused > 0) fprintf(stderr, "input %d refused", refused);',
            "for (size_t k = 0; refused && k < count * sizeof *out; k++) {",
            "if (((char *)out)[k] != 90) return 2;",
            "}",
            "if (refused) return 1;",
            "exported_close(); /* and again */",
            "if (exported_run_many(in, out, count)) return 3;",
            "for (int k = 0; k < count; k++) {",
            *writes,
            "}",
            "exported_close();\nreturn 0;\n}\n",
        ]
    )
