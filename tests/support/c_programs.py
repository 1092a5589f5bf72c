"""Exported C, compiled and run: many programs as one, integers in by a pipe, integers out by another."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cvm.export import targets
from cvm.export.c.identifiers import distinct
from cvm.program import (
    DTYPES,
    Input,
    Instruction,
    IntArray,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import Proven
from cvm.reference.interpreter import run as run_reference

WARNINGS = (
    *("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"),
    "-Wno-overlength-strings",
)
SANITIZERS = (
    *("-O1", "-fsanitize=undefined"),
    *("-fno-sanitize-recover=all",),
)
BARE_FLAGS = ("-O2", "-mbig-endian", "-static", "-nostdlib", "-ffreestanding")
BARE = """\
/* What a C library would do, on Linux for ARM in 64 bits: for byte orders that no library is installed for. */
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t count);
void *memset(void *to, int byte, size_t count);
void _start(void);
static long call(long number, long a, long b, long c)
{
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
}
void *memcpy(void *to, const void *from, size_t count)
{
  for (size_t i = 0; i < count; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
  return to;
}
void *memset(void *to, int byte, size_t count)
{
  for (size_t i = 0; i < count; i++) ((volatile char *)to)[i] = (char)byte;
  return to;
}
static size_t fread(void *to, size_t size, size_t count, int file)
{
  size_t done = 0;
  while (done < size) {
    const long got = call(63, file, (long)((char *)to + done), (long)(size - done));
    if (got <= 0) return 0;
    done += (size_t)got;
  }
  return count;
}
static void fwrite(const void *from, size_t size, size_t count, int file)
{
  size_t done = 0;
  while (done < size * count) done += (size_t)call(64, file, (long)((const char *)from + done), (long)(size - done));
}
#define stdin 0
#define stdout 1
int main(void);
void _start(void)
{
  call(93, main(), 0, 0);
  for (;;) {}
}
"""
Arrays = Mapping[str, IntArray]


def needs(compiler: str) -> pytest.MarkDecorator:
    """Skip a test where the compiler is not installed."""
    return pytest.mark.skipif(
        shutil.which(compiler) is None, reason=f"no {compiler} here"
    )


def merged(programs: Sequence[Program]) -> Program:
    """Return one program that holds all of them; names of the k-th begin with `k.`."""
    inputs: list[Input] = []
    constants: list[IntArray] = []
    starts = []
    for index, program in enumerate(programs):
        starts.append((len(inputs), len(constants)))
        for item in program.inputs:
            name = f"{index}.{item.name}"
            inputs.append(Input(name, item.type, item.lo, item.hi))
        constants += program.constants
    instructions: list[Instruction] = []
    outputs: list[Output] = []
    for index, program in enumerate(programs):
        first_input, first_constant = starts[index]
        count = len(instructions)

        def renumbered(
            value: int,
            program: Program = program,
            first_input: int = first_input,
            first_constant: int = first_constant,
            count: int = count,
        ) -> int:
            if value < program.first_constant:
                return first_input + value
            if value < program.first_instruction:
                offset = value - program.first_constant
                return len(inputs) + first_constant + offset
            offset = value - program.first_instruction
            return len(inputs) + len(constants) + count + offset

        for step in program.instructions:
            operands = tuple(map(renumbered, step.operands))
            instructions.append(
                Instruction(step.name, operands, step.attributes)
            )
        for port in program.outputs:
            name = f"{index}.{port.name}"
            outputs.append(Output(name, renumbered(port.value)))
    return Program(
        tuple(inputs), tuple(constants), tuple(instructions), tuple(outputs)
    )


def prefixed(samples: Sequence[Arrays]) -> dict[str, IntArray]:
    """Return the inputs of a merged program: those of the k-th of its parts are `samples[k]`."""
    return {
        f"{index}.{name}": array
        for index, arrays in enumerate(samples)
        for name, array in arrays.items()
    }


@dataclass(frozen=True)
class CProgram:
    """An exported program in a folder, with a main of ours that reads samples and writes outputs."""

    form: Proven
    folder: Path
    byte_order: str = "="

    @classmethod
    def write(cls, form: Proven, folder: Path) -> CProgram:
        folder.mkdir(parents=True, exist_ok=True)
        files = targets.export(form, "c", "exported").files
        for name, text in files.items():
            (folder / name).write_text(text)
        (folder / "pipe.c").write_text(_pipe(form))
        (folder / "bare.c").write_text(BARE + _pipe(form))
        return cls(form, folder)

    def build(self, compiler: str, *flags: str, main: str = "pipe.c") -> Path:
        """Compile with all warnings as errors; return the executable."""
        binary = self.folder / f"{compiler}{''.join(flags)}{main}".replace(
            "/", "_"
        )
        done = subprocess.run(
            [compiler, *WARNINGS, *flags, "-o", binary.name, "exported.c", main],
            cwd=self.folder,
            capture_output=True,
            text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[:4000]
        return binary

    def run(
        self,
        binary: Path,
        *,
        launcher: Sequence[str] = (),
        samples: Sequence[Arrays],
    ) -> list[dict[str, IntArray]]:
        """Return the outputs of each sample."""
        sent = self.bytes_of(samples)
        done = subprocess.run(
            [*launcher, str(binary)], input=sent, capture_output=True
        )
        assert done.returncode == 0, (done.returncode, done.stderr[-4000:])
        return self._outputs(done.stdout, len(samples))

    def bytes_of(self, samples: Sequence[Arrays]) -> bytes:
        """Return the inputs of all samples as the main reads them."""
        return b"".join(
            sample[item.name].astype(self._dtype(item.type)).tobytes()
            for sample in samples
            for item in self.form.program.inputs
        )

    def _dtype(self, type_: TensorType) -> np.dtype[Any]:
        return DTYPES[type_.dtype].newbyteorder(self.byte_order)

    def _outputs(self, data: bytes, count: int) -> list[dict[str, IntArray]]:
        place, found = 0, []
        for _ in range(count):
            outputs = {}
            for item in self.form.program.outputs:
                type_ = self.form.types[item.value]
                array = np.frombuffer(
                    data, self._dtype(type_), type_.elements, place
                )
                place += array.nbytes
                own = array.astype(DTYPES[type_.dtype])
                outputs[item.name] = own.reshape(type_.shape)
            found.append(outputs)
        assert place == len(data)
        return found

    def differing(
        self,
        binary: Path,
        *,
        launcher: Sequence[str] = (),
        samples: Sequence[Arrays],
    ) -> list[str]:
        """Return the outputs that differ from the reference's in any sample."""
        names = []
        answers = self.run(binary, launcher=launcher, samples=samples)
        for sample, found in zip(samples, answers, strict=True):
            expected = run_reference(self.form, dict(sample))
            names += [
                name
                for name, array in expected.items()
                if array.tobytes() != found[name].tobytes()
            ]
        return names


def _pipe(form: Proven) -> str:
    """Return a main that reads one sample after the other and writes the answers to each."""
    program = form.program
    inputs = distinct(item.name for item in program.inputs)
    outputs = distinct(item.name for item in program.outputs)
    reads = [
        f"    if (fread(in.{field}, sizeof in.{field}, 1, stdin) != 1) return 0;"
        for field in inputs
    ]
    writes = [
        f"    fwrite(out.{field}, sizeof out.{field}, 1, stdout);"
        for field in outputs
    ]
    return "\n".join(
        [
            "#ifndef stdin\n#include <stdio.h>\n#endif",
            '#include "exported.h"',
            "static exported_inputs in;",
            "static exported_outputs out;",
            "int main(void)\n{\n  for (;;) {",
            *reads,
            "    { int refused = exported_run(&in, &out); if (refused) return refused; }",
            *writes,
            "  }\n}\n",
        ]
    )
