"""A processor that hides what came after AVX2, or after AVX-VNNI, from programs whose `cpuid` is redirected and from no others."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import bench, machine, older

FLAGS = set(machine.CPUINFO.read_text().split()) if machine.CPUINFO.exists() else set()  # fmt: skip
needs_compiler = pytest.mark.skipif(
    older.impossible("avx2") is not None, reason=f"{older.impossible('avx2')}"
)

# `not_cpuid` holds the two bytes of `cpuid` within another instruction.
PROGRAM = r"""
#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned not_cpuid(void) {
    unsigned value;
    __asm__ volatile("movl $0xa20f, %0" : "=r"(value));
    return value;
}

int main(int count, char **words) {
    unsigned a, b, c, d;
    char used = count > 1 ? words[1][0] : 0;
    if (used == 't') __builtin_trap();
    if (used == 'k') __asm__ volatile("kxnorw %%k1, %%k1, %%k1" ::: "memory");
    unsigned (*in_use)(void) = (unsigned (*)(void))dlsym(RTLD_DEFAULT, "avx512_in_use");
    __cpuid(0, a, b, c, d);
    printf("%.4s %.4s %.4s\n", (char *)&b, (char *)&d, (char *)&c);
    __cpuid_count(7, 0, a, b, c, d);
    printf("avx2 %u, avx512f %u, avx512vl %u, vnni %u, ", b >> 5 & 1, b >> 16 & 1, b >> 31, c >> 11 & 1);
    printf("bmi2 %u, vaes %u, amx %u, ", b >> 8 & 1, c >> 9 & 1, d >> 24 & 3);
    __cpuid_count(7, 1, a, b, c, d);
    printf("avx-vnni %u\n%x %d\n", a >> 4 & 1, not_cpuid(), in_use ? in_use() != 0 : -1);
}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Return the program and its redirected copy."""
    folder = tmp_path_factory.mktemp("cpuid")
    plain, redirected = folder / "plain", folder / "redirected"
    (folder / "ask.c").write_text(PROGRAM)
    words = ["cc", "-O1", str(folder / "ask.c"), "-ldl", "-o", str(plain)]
    subprocess.run(words, check=True)
    redirected.write_bytes(plain.read_bytes())
    redirected.chmod(0o755)
    assert older.redirect(redirected) == 3
    return plain, redirected


def ran(program: Path, *words, answered=True, isa="avx2"):
    preload = {"LD_PRELOAD": str(older.answers(isa))} if answered else {}
    tuned = {"GLIBC_TUNABLES": older.C_LIBRARY}
    return subprocess.run(
        [str(program), *words],
        env=os.environ | preload | tuned,
        text=True,
        capture_output=True,
        check=False,
    )


def said(*flags):
    return [int(flag in FLAGS) for flag in flags]


LINE = "avx2 {}, avx512f {}, avx512vl {}, vnni {}, bmi2 {}, vaes {}, amx {}, avx-vnni {}"


@needs_compiler
def test_avx2_and_what_is_older_stays_and_the_rest_is_hidden(programs):
    maker, flags, rest = ran(programs[1]).stdout.splitlines()
    avx2, bmi2, vaes = said("avx2", "bmi2", "vaes")
    assert flags == LINE.format(avx2, 0, 0, 0, bmi2, vaes, 0, 0)
    assert maker in ("Auth enti cAMD", "Genu ineI ntel")
    assert rest == "a20f 0"


@needs_compiler
def test_avx_vnni_stays_where_it_is_asked_for(programs):
    flags = ran(programs[1], isa="avxvnni").stdout.splitlines()[1]
    avx2, bmi2, vaes, avx_vnni = said("avx2", "bmi2", "vaes", "avx_vnni")
    assert flags == LINE.format(avx2, 0, 0, 0, bmi2, vaes, 0, avx_vnni)


@needs_compiler
def test_a_program_that_is_not_redirected_sees_the_processor(programs):
    shown = ran(programs[0]).stdout.splitlines()[1]
    assert shown.split(", ")[:4] == [
        f"{name} {value}"
        for name, value in zip(
            ("avx2", "avx512f", "avx512vl", "vnni"),
            said("avx2", "avx512f", "avx512vl", "avx512_vnni"),
            strict=True,
        )
    ]


@needs_compiler
def test_nobody_answers_without_the_library_nor_after_a_trap(programs):
    assert ran(programs[1], answered=False).returncode == -signal.SIGILL
    assert ran(programs[1], "trap").returncode == -signal.SIGILL


@needs_compiler
@pytest.mark.skipif(
    not {"avx512f", "xgetbv1"} <= FLAGS, reason="the processor has no AVX-512"
)
def test_avx_512_leaves_a_trace(programs):
    assert ran(programs[1], "k").stdout.splitlines()[2] == "a20f 1"


@pytest.mark.parametrize(
    ("isa", "flags"),
    [("avx2", ("avx2",)), ("avxvnni", ("avx2", "avx_vnni"))],
)
def test_figures_name_the_processor_that_was_pretended(monkeypatch, isa, flags):
    monkeypatch.setenv(older.HELD_TO, isa)
    machine.isa_flags.cache_clear()
    try:
        assert machine.isa_flags() == flags
        described = machine.describe()["instruction sets"]
        assert described == f"{' '.join(flags)} (held to it)"
    finally:
        machine.isa_flags.cache_clear()


def test_where_it_cannot_be_pretended_the_command_says_why(monkeypatch):
    monkeypatch.setattr(older.platform, "machine", lambda: "aarch64")
    done = CliRunner().invoke(bench.main, ["--isa", "avx2"])
    assert done.exit_code == 1
    assert done.output == (
        "Error: the contenders cannot be held to AVX2: it takes Linux on x86-64\n"
    )


@needs_compiler
def test_an_instruction_set_must_be_there(monkeypatch, tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags : avx2 bmi2\n")
    monkeypatch.setattr(older, "CPUINFO", cpuinfo)
    done = CliRunner().invoke(bench.main, ["--isa", "avxvnni"])
    assert done.exit_code == 1
    assert done.output == (
        "Error: the contenders cannot be held to AVX2 and AVX-VNNI: this processor has no avx_vnni\n"
    )
