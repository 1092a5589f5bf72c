import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cvm.errors import BadInput
from cvm.file import disk
from cvm.file import format as file_format
from cvm.program import (
    Input,
    Instruction,
    Metadata,
    Output,
    Program,
    TensorType,
)
from cvm.runtime import native
from tests.support.command import NO_ENGINE, cvm, said
from tests.support.run_programs import (
    MEANINGS,
    chain,
    doubler,
    pair,
    save,
    save_array,
)

BIG = 2**31 - 1


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, so that messages hold short names."""
    monkeypatch.chdir(tmp_path)
    return Path()


def doubled(here: Path, **options: object) -> tuple[str, str]:
    return save(doubler(**options), here), save_array(
        [[1, 2, -3], [4, 5, 6]], here
    )  # type: ignore[arg-type]


# --- run


def test_run_writes_outputs(here: Path) -> None:
    result = cvm("run", *doubled(here)[:1], "--input", "x.npy", "-o", "out.npz")
    assert (result.exit_code, result.output) == (0, "wrote out.npz\n")
    with np.load(here / "out.npz") as out:
        assert out["y"].dtype == np.int32
        assert out["y"].tolist() == [[2, 4, -6], [8, 10, 12]]


def test_run_without_an_output_file_prints_a_summary(here: Path) -> None:
    p, x = doubled(here)
    assert cvm("run", p, "--input", x).output == (
        "2 samples\ny: int32 [2, 3], -6..12\n  0: 2 4 -6; largest at 1\n  1: 8 10 12; largest at 2\n"
    )


def test_run_takes_and_gives_reals_through_the_scales(here: Path) -> None:
    # 0.25 / 0.5 + 0.5 = 1.0 -> 1; -0.25 -> 0; 1e9 -> 1000. Doubled: 2, 0, 2000. Back: (q - 1) * 0.25
    p = save(doubler(metadata=MEANINGS), here)
    x = save_array([[0.25, -0.25, 1e9]], here, dtype="f4")
    assert cvm("run", p, "--input", x, "--real", "-o", "out.npz").exit_code == 0
    with np.load(here / "out.npz") as out:
        assert out["y"].dtype == np.float64
        assert out["y"].tolist() == [[0.25, -0.25, 499.75]]


def test_run_counts_the_reals_that_it_clips(here: Path) -> None:
    p = save(doubler(metadata=MEANINGS), here)
    # -500 and 500 are the ends; 500.2 rounds to 500, and 500.3 to one step beyond
    reals = [[500, 500.2, -500], [500.3, 1e9, -np.inf]]
    x = save_array(reals, here, dtype="f8")
    result = cvm("run", p, "--input", x, "--real", "-o", "out.npz")
    assert result.exit_code == 0
    assert result.stderr == (
        "cvm: warning: input 'x': 3 of 6 values (50 %) lie outside -500..500, the range of "
        "the calibration, and were clipped; --strict refuses them\n"
    )


def test_run_refuses_what_it_would_clip_if_strict(here: Path) -> None:
    program = doubler(metadata=MEANINGS)
    x = save_array([[0, 1, 1e9]], here, dtype="f4")
    assert "1 of 3 values (33 %) lie outside" in refused(
        here, x, "--real", "--strict", program=program
    )
    x = save_array([[0, 1, 2]], here, dtype="f4")
    p = save(program, here)
    result = cvm("run", p, "--input", x, "--real", "--strict")
    assert (result.exit_code, result.stderr) == (0, "")


def test_run_leaves_labels_alone_and_reads_many_inputs(here: Path) -> None:
    p = save(pair(), here)
    np.savez(
        here / "x.npz",
        a=[[1, 2]],
        b=[[10, 20], [30, 40]],
        y=np.asarray(["cat"]),
    )
    assert cvm("run", p, "--input", "x.npz", "-o", "out.npz").exit_code == 0
    with np.load(here / "out.npz") as out:
        assert out["total"].tolist() == [[11, 22], [31, 42]]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_writes_the_same_bytes(
    here: Path, threads: int
) -> None:
    p = save(chain(), here)
    x = save_array(np.arange(-90, 90).reshape(60, 3), here)
    for name, count in (("one", 1), ("many", threads)):
        files = [
            "-o",
            f"{name}.npz",
            "--receipt",
            f"{name}.r",
            "--trace",
            f"{name}.t",
        ]
        assert (
            cvm("run", p, "--input", x, "--threads", count, *files).exit_code
            == 0
        )
    for suffix in ("npz", "r", "t"):
        assert (here / f"one.{suffix}").read_bytes() == (
            here / f"many.{suffix}"
        ).read_bytes()


def test_every_engine_writes_the_same_bytes(here: Path) -> None:
    p, x = save(chain(), here), save_array(np.arange(-9, 9).reshape(6, 3), here)
    engines = ["reference", "auto", *(["native"] if native.available() else [])]
    for engine in engines:
        files = [
            "-o",
            f"{engine}.npz",
            "--receipt",
            f"{engine}.r",
            "--trace",
            f"{engine}.t",
        ]
        assert (
            cvm("run", p, "--input", x, "--engine", engine, *files).exit_code
            == 0
        )
        recorded = ["reference.r", "--trace", "reference.t"]
        assert (
            cvm(
                "replay", p, *recorded, "--input", x, "--engine", engine
            ).exit_code
            == 0
        )
    for engine in engines[1:]:
        for suffix in ("npz", "r", "t"):
            assert (here / f"reference.{suffix}").read_bytes() == (
                here / f"{engine}.{suffix}"
            ).read_bytes()


def test_a_missing_engine_is_said_once_and_never_between_the_answers(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cvm.runtime.native.available", lambda: False)
    p, x = doubled(here)
    result = cvm("run", p, "--input", x, "--receipt", "r.json", notice=True)
    assert (result.exit_code, result.stderr) == (0, NO_ENGINE)
    assert result.stdout.startswith("2 samples\n")
    assert (
        cvm("replay", p, "r.json", "--input", x, notice=True).stderr
        == NO_ENGINE
    )
    for command in (
        ["run", p, "--input", x, "--engine", "reference"],
        ["run", p, "--input", x, "--checked"],
    ):
        assert cvm(*command, notice=True).stderr == ""
    for command in (
        ["verify", p],
        ["show", p],
        ["cost", p, "--json"],
        ["digest", p],
    ):
        assert cvm(*command, notice=True).stderr == ""


def test_the_native_engine_is_refused_where_it_is_missing_or_no_proof_is_wanted(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, x = doubled(here)
    monkeypatch.setattr("cvm.runtime.native.available", lambda: True)
    sentence = "only the reference runs without a proof: leave 'checked' or the native engine away"
    assert (
        said(cvm("run", p, "--input", x, "--engine", "native", "--checked"), 2)
        == sentence
    )
    monkeypatch.setattr("cvm.runtime.native.available", lambda: False)
    sentence = "the native engine is not installed; to get it, pip install with a C++20 compiler, or a wheel"
    assert (
        said(cvm("run", p, "--input", x, "--engine", "native"), 2) == sentence
    )
    assert cvm("run", p, "--input", x, "--receipt", "r.json").exit_code == 0
    assert (
        said(cvm("replay", p, "r.json", "--input", x, "--engine", "native"), 2)
        == sentence
    )


def test_an_unproven_program_is_refused_with_the_interval_and_the_limit(
    here: Path,
) -> None:
    p = save(doubler(high=BIG), here)
    x = save_array([[1, 2, 3]], here)
    sentence = "%1 = add: result interval -4294967294..4294967294 does not fit i32 (-2147483648..2147483647) [add.fits]"
    assert (
        said(cvm("run", p, "--input", x), 1)
        == f"{sentence}; --checked runs it without a proof"
    )
    assert said(cvm("verify", p), 1) == sentence


def test_checked_runs_an_unproven_program_while_values_fit(here: Path) -> None:
    p = save(doubler(high=BIG), here)
    x = save_array([[1, 2, 3]], here)
    assert cvm("run", p, "--input", x, "--checked").output.startswith(
        "1 sample\ny: int32 [1, 3], 2..6\n"
    )


@pytest.mark.parametrize("threads", [1, 3])
def test_checked_traps_naming_sample_instruction_and_value(
    here: Path, threads: int
) -> None:
    p = save(doubler(high=BIG), here)
    x = save_array([[1, 2, 3], [0, 2**30, 0], [BIG, 0, 0]], here)
    result = cvm(
        "run",
        p,
        "--input",
        x,
        "--checked",
        "--threads",
        threads,
        "-o",
        "out.npz",
    )
    assert (
        said(result, 3)
        == "sample 1: %1 = add: value 2147483648 does not fit i32 (-2147483648..2147483647)"
    )
    assert sorted(path.name for path in here.iterdir()) == ["p.cvm", "x.npy"]


def test_run_and_replay_refuse_what_takes_more_than_the_caller_allows(
    here: Path,
) -> None:
    p, x = save(chain(), here), save_array([[1, 2, 3]], here)
    assert (
        cvm(
            "run",
            p,
            "--input",
            x,
            "--max-cost",
            112,
            "--max-memory",
            24,
            "--receipt",
            "r.json",
        ).exit_code
        == 0
    )
    too_dear = "one sample costs 112; allowed are 111"
    assert said(cvm("run", p, "--input", x, "--max-cost", 111), 2) == too_dear
    assert (
        said(cvm("replay", p, "r.json", "--input", x, "--max-cost", 111), 2)
        == too_dear
    )
    too_large = (
        "the bytes that one sample's values hold at once are 24; allowed are 23"
    )
    assert said(cvm("run", p, "--input", x, "--max-memory", 23), 2) == too_large


def test_every_command_s_summary_fits_its_line(here: Path) -> None:
    commands = cvm("--help").output.partition("Commands:")[2]
    assert "verify" in commands and "..." not in commands


def refused(
    here: Path, x: object, *options: object, program: Program | None = None
) -> str:
    """What `run` says, having written nothing."""
    p = save(program or doubler(), here)
    before = sorted(here.iterdir())
    sentence = said(cvm("run", p, "--input", x, *options), 2)
    assert sorted(here.iterdir()) == before
    return sentence


def test_run_refuses_input_files_that_are_none(here: Path) -> None:
    assert (
        refused(here, "absent.npy") == "absent.npy: No such file or directory"
    )
    (here / "folder").mkdir()
    assert refused(here, "folder").startswith(
        "folder: pictures are for one input u8[1,H,W,C]; this program's is "
    )
    assert refused(here, "folder").endswith(
        "give an .npz or .npy, or a program by mrt convert --input-dtype u8"
    )
    (here / "empty.npz").touch()
    assert refused(here, "empty.npz") == "empty.npz: the file is empty"
    (here / "text.npz").write_text("hello")
    assert (
        refused(here, "text.npz")
        == "text.npz: neither an .npy nor an .npz file"
    )
    (here / "cut.npz").write_bytes(b"PK\3\4")
    assert (
        refused(here, "cut.npz")
        == "cut.npz: not a readable .npz file: File is not a zip file"
    )
    os.mkfifo(here / "pipe")  # opening it would wait for ever
    words = "pipe: not a regular file but a pipe or device; save its content as a file first"
    assert refused(here, "pipe") == words
    assert said(cvm("show", "pipe"), 2) == words


def test_run_refuses_arrays_that_do_not_suit(here: Path) -> None:
    assert refused(here, save_array([[1, 2]], here)) == (
        "input 'x': shape [1, 2]; expected [1,3] or, for N samples, [N,3]"
    )
    assert refused(here, save_array([[1, 2, 3000]], here)) == (
        "input 'x', sample 0, index [0, 2]: value 3000 is outside -1000..1000"
    )
    assert refused(here, save_array([[1, 2, 3]], here, dtype="f8")) == (
        "input 'x': holds float64; expected i32 integers; give --real to quantize real values by the program's scales"
    )
    np.save(
        here / "objects.npy",
        np.asarray([[None, 1, 2]], object),
        allow_pickle=True,
    )
    assert refused(here, "objects.npy") == (
        "objects.npy: holds Python objects, which are never loaded; expected real numbers"
    )
    np.savez(here / "other.npz", z=[[1, 2, 3]])
    assert refused(here, "other.npz") == "other.npz: no array 'x'; it has 'z'"
    assert refused(here, save_array([[1, 2]], here), program=pair()) == (
        "x.npy: one array for 2 inputs; give an .npz with the arrays a, b"
    )


def test_run_refuses_reals_it_cannot_place(here: Path) -> None:
    x = save_array([[1, np.nan, 3]], here, dtype="f8")
    assert refused(here, x, "--real") == (
        "this program has no metadata, so no scales; leave --real away and give integers"
    )
    assert refused(here, x, "--real", program=doubler(metadata=MEANINGS)) == (
        "input 'x', sample 0, index [0, 1]: value is NaN"
    )


def test_run_refuses_output_paths_before_it_runs(here: Path) -> None:
    x = save_array([[1, 2, 3]], here)
    (here / "folder").mkdir()
    assert (
        refused(here, x, "-o", "folder")
        == "folder: cannot be written: it is a folder"
    )
    assert refused(here, x, "-o", "nowhere/out.npz") == (
        f"nowhere/out.npz: cannot be written: the folder {here.resolve() / 'nowhere'} does not exist"
    )
    assert (
        refused(here, x, "-o", x)
        == "x.npy: cannot be written: it is also an input"
    )
    assert (
        refused(here, x, "--receipt", "p.cvm")
        == "p.cvm: cannot be written: it is also an input"
    )
    assert (
        refused(here, x, "--receipt", "r", "--trace", "./r")
        == "r: cannot be written: it is named for two outputs"
    )
    assert refused(here, x, "-o", "x.npy/out") == (
        f"x.npy/out: cannot be written: the folder {here.resolve() / 'x.npy'} does not exist"
    )


def test_links_that_lead_in_a_circle_are_refused(here: Path) -> None:
    x = save_array([[1, 2, 3]], here)
    (here / "a").symlink_to("b")
    (here / "b").symlink_to("a")
    many = "Too many levels of symbolic links"
    assert refused(here, x, "-o", "a") == f"a: {many}"
    assert refused(here, x, "--receipt", "b/r.json") == f"b/r.json: {many}"
    assert refused(here, "a", "-o", "out.npz") == f"a: {many}"
    assert said(cvm("show", "a"), 2) == f"a: {many}"
    with pytest.raises(BadInput, match=f"^a: {many}$"):
        disk.write_all({Path("a"): disk.text_writer("x")})


def test_no_permission_is_said_and_leaves_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = save_array([[1, 2, 3]], here)
    monkeypatch.setattr(
        "os.access", lambda *_: False
    )  # root may write anywhere
    assert (
        refused(here, x, "-o", "out.npz")
        == f"out.npz: cannot be written: no permission to write into {here.resolve()}; name a file elsewhere (-o)"
    )


def test_a_full_disk_leaves_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    x = save_array([[1, 2, 3]], here)
    monkeypatch.setattr("cvm.file.npy.write_npz", full)
    assert refused(here, x, "--receipt", "r.json", "-o", "out.npz") == (
        "out.npz: cannot be written: No space left on device"
    )


def test_outputs_replace_files_and_follow_links(here: Path) -> None:
    p, x = doubled(here)
    (here / "real.json").write_text("old")
    (here / "link.json").symlink_to("real.json")
    assert cvm("run", p, "--input", x, "--receipt", "link.json").exit_code == 0
    assert (here / "link.json").is_symlink()
    assert (
        json.loads((here / "real.json").read_text())["format"]
        == "cvm-receipt-2"
    )


def test_a_pipe_is_written_into_not_replaced(here: Path) -> None:
    p, x = doubled(here)
    os.mkfifo(here / "pipe")
    reader = os.open(here / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert cvm("run", p, "--input", x, "-o", "pipe").exit_code == 0
        assert (here / "pipe").is_fifo()
        assert os.read(reader, 2) == b"PK"
    finally:
        os.close(reader)


@pytest.mark.parametrize("command", ["verify", "show", "digest", "cost", "run"])
def test_every_command_refuses_what_is_no_program(
    here: Path, command: str
) -> None:
    save(doubler(), here)
    whole = (here / "p.cvm").read_bytes()
    more = (
        ["--input", save_array([[1, 2, 3]], here)] if command == "run" else []
    )
    assert (
        said(cvm(command, "absent.cvm", *more), 2)
        == "absent.cvm: No such file or directory"
    )
    (here / "empty.cvm").touch()
    assert (
        said(cvm(command, "empty.cvm", *more), 2)
        == "empty.cvm: the file is empty"
    )
    (here / "text.cvm").write_text("a text named .cvm")
    assert said(cvm(command, "text.cvm", *more), 2).startswith(
        "text.cvm: not a program: it begins with "
    )
    (here / "cut.cvm").write_bytes(whole[:-1])
    cut = said(cvm(command, "cut.cvm", *more), 2)
    assert cut.startswith("cut.cvm: the file ends at byte ")
    assert cut.endswith(": it is cut short, copy it again")
    assert said(cvm(command, ".", *more), 2).startswith(
        ".: a folder, not a program; it holds cut.cvm, empty.cvm, p.cvm and 1 more"
    )


def test_a_program_that_breaks_a_rule_is_bad_input(here: Path) -> None:
    x = Input("x", TensorType("i32", (1, 3)), 0, 9)
    p = save(
        Program(
            (x,),
            (),
            (Instruction("clamp", (0,), {"min": 1, "max": 0}),),
            (Output("y", 1),),
        ),
        here,
    )
    sentence = "%1 = clamp: min 1, max 0: need -2147483648 <= min <= max <= 2147483647 [clamp.C2]"
    assert said(cvm("verify", p), 2) == sentence
    assert (
        said(
            cvm(
                "run", p, "--input", save_array([[1, 2, 3]], here), "--checked"
            ),
            2,
        )
        == sentence
    )


# --- verify, show, digest, cost


def test_verify_prints_the_proof_summary(here: Path) -> None:
    p = save(chain(), here)
    program_id = file_format.program_id(chain())
    # %1 lies in -2000..2000: log2(2147483647 / 2000) = 20.034
    assert cvm("verify", p).output == (
        "proven: no input inside its interval can make any value overflow\n"
        "  values      4: 1 input, 0 constants, 3 instructions\n"
        "  slack       20.03 bits where it is tightest, %1 = add (-2000..2000)\n"
        "  cost        112 per sample (weights version 1)\n"
        f"  program id  {program_id}\n"
    )
    assert max(map(len, cvm("verify", p).output.splitlines())) < 80


def test_verify_all_lists_every_interval_and_slack(here: Path) -> None:
    p = save(chain(), here)
    # log2(2147483647 / 1000) = 21.034; / 5: 28.678; / 2: 29.99999 and more, cut to 29.99
    assert cvm("verify", p, "--all").output.splitlines()[6:] == [
        "value  from    type         interval  slack",
        "%0     input   i32[1,3]  -1000..1000  21.03",
        "%1     add     i32[1,3]  -2000..2000  20.03",
        "%2     clamp   i32[1,3]        -5..5  28.67",
        "%3     argmax  i32[1]           0..2  29.99",
    ]


def test_verify_json_says_the_same(here: Path) -> None:
    found = json.loads(
        cvm("verify", save(chain(), here), "--json", "--all").output
    )
    assert found["proven"] is True
    assert found["tightest"] == {
        "value": 1,
        "type": "i32[1,3]",
        "lo": -2000,
        "hi": 2000,
        "slack_hundredths": 2003,
    }
    assert [row["slack_hundredths"] for row in found["intervals"]] == [
        2103,
        2003,
        2867,
        2999,
    ]


def test_verify_json_says_why_not(here: Path) -> None:
    result = cvm("verify", save(doubler(high=BIG), here), "--json")
    assert result.exit_code == 1
    assert json.loads(result.output) == {
        "format": "cvm-verify-1",
        "proven": False,
        "rule": "add.fits",
        "where": "%1 = add",
        "reason": "result interval -4294967294..4294967294 does not fit i32 (-2147483648..2147483647)",
    }


def test_show_lists_the_program(here: Path) -> None:
    p = save(chain(MEANINGS), here)
    assert cvm("show", p).output == (
        f"program {file_format.program_id(chain())}\n\n"
        "inputs\n  %0 x: i32[1,3] in -1000..1000, scale 0.5, zero point 0\n\n"
        "instructions\n"
        "  %1 = add %0 %0 -> i32[1,3]  # sum_1\n"
        "  %2 = clamp %1 min=-5 max=5 -> i32[1,3]\n"
        "  %3 = argmax %2 axis=1 -> i32[1]\n\n"
        "outputs\n  y = %2: i32[1,3], scale 0.25, zero point 1\n  best = %3: i32[1]\n"
    )


def test_show_lists_labels_and_provenance(here: Path) -> None:
    few = ("cat", "d\x1bog")
    many = tuple(f"class {number}" for number in range(1000))
    p = save(chain(Metadata(labels=few, provenance={"made by": "hand"})), here)
    assert cvm("show", p).output.endswith(
        "labels\n  2: cat, d\\x1bog\n\nprovenance\n  made by: hand\n"
    )
    p = save(chain(Metadata(labels=many)), here)
    assert (
        "labels\n  1,000: class 0, class 1, class 2," in cvm("show", p).output
    )
    assert cvm("show", p).output.endswith(", class 7, ..\n")


def test_show_summarises_constants_and_needs_no_proof(here: Path) -> None:
    x = Input("x", TensorType("i8", (1, 9)), -128, 127)
    constants = (
        np.arange(27, dtype=np.int8).reshape(3, 9),
        np.asarray([7, -8, BIG], np.int32),
    )
    program = Program(
        (x,),
        constants,
        (Instruction("dense", (0, 1, 2), {"input_zp": 0}),),
        (Output("y", 3),),
    )
    lines = cvm("show", save(program, here)).output.splitlines()
    assert lines[5:8] == [
        "constants",
        "  %1 = i8[3,9] in 0..26, 27 bytes",
        "  %2 = i32[3] 7 -8 2147483647",
    ]
    assert lines[10] == "  %3 = dense %0 %1 %2 input_zp=0 -> i32[1,3]"


def test_digest_prints_the_id_and_the_metadata(here: Path) -> None:
    bare = save(chain(), here, "a.cvm")
    dressed = save(chain(MEANINGS), here, "b.cvm")
    program_id = file_format.program_id(chain())
    metadata = file_format.metadata_digest(chain(MEANINGS))
    assert (
        cvm("digest", bare).output
        == f"program   {program_id}\nmetadata  none\n"
    )
    assert (
        cvm("digest", dressed).output
        == f"program   {program_id}\nmetadata  {metadata}\n"
    )
    assert json.loads(cvm("digest", bare, "--json").output) == {
        "format": "cvm-digest-1",
        "program": program_id,
        "metadata": None,
    }


def test_cost_lists_instructions_and_the_total(here: Path) -> None:
    p = save(chain(), here)
    assert cvm("cost", p).output.splitlines() == [
        "value    instruction  MACs  table reads  element ops  bytes  cost",
        "%1       add             0            0            3     36    48",
        "%2       clamp           0            0            3     24    36",
        "%3       argmax          0            0            3     16    28",
        "total                    0            0            9     76   112",
        "weights  version 1       1            8            4      1",
        "",
        "memory  24 bytes of values at once, at most",
    ]
    found = json.loads(cvm("cost", p, "--json").output)
    assert found["total"]["cost"] == 112
    assert [row["cost"] for row in found["instructions"]] == [48, 36, 28]
    assert found["memory"] == 24


# --- the command itself


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "p.cvm"],
        ["run"],
        ["nonsense"],
        ["run", "p.cvm", "--input", "x", "--threads", "0"],
        ["trace", "diff", "a"],
    ],
)
def test_usage_errors_exit_with_2(here: Path, arguments: list[str]) -> None:
    result = cvm(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage: ")


@pytest.mark.parametrize(
    "command",
    [
        ["run"],
        ["verify"],
        ["replay"],
        ["trace", "diff"],
        ["show"],
        ["digest"],
        ["cost"],
        ["bench"],
    ],
)
def test_every_help_has_an_example(command: list[str]) -> None:
    result = cvm(*command, "--help")
    assert result.exit_code == 0
    assert f"  cvm {' '.join(command)} " in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def process(
    *arguments: str, cwd: Path, **options: object
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "cvm", *arguments]
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )  # type: ignore[call-overload,no-any-return]


def test_real_processes_exit_with_the_promised_codes_and_no_traceback(
    tmp_path: Path,
) -> None:
    save(doubler(), tmp_path)
    save(doubler(high=BIG), tmp_path, "q.cvm")
    save_array([[1, 2, 900]], tmp_path)
    save_array([[1, 2, BIG]], tmp_path, "big.npy")
    for code, arguments in (
        (0, ["run", "p.cvm", "--input", "x.npy"]),
        (1, ["run", "q.cvm", "--input", "x.npy"]),
        (2, ["run", "p.cvm", "--input", "big.npy"]),
        (3, ["run", "q.cvm", "--input", "big.npy", "--checked"]),
    ):
        done = process(*arguments, cwd=tmp_path)
        assert done.returncode == code, done
        assert "Traceback" not in done.stderr
        assert (done.stderr in ("", NO_ENGINE)) == (
            code == 0
        )  # and no progress bar on a pipe


def test_a_closed_stderr_is_no_failure(tmp_path: Path) -> None:
    """As where a daemon starts it: sys.stderr is then None."""
    save(doubler(), tmp_path)
    save_array([[1, 2, 9]], tmp_path)
    command = '"$0" -m cvm run p.cvm --input x.npy -o y.npz 2>&-'
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable],
        cwd=tmp_path,
        env=environment,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert (tmp_path / "y.npz").exists()


def test_help_does_not_load_numpy(tmp_path: Path) -> None:
    script = "import sys; from cvm.cli import cli; cli(['-h'], standalone_mode=False); sys.exit('numpy' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    assert (
        subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            cwd=tmp_path,
            timeout=60,
        ).returncode
        == 0
    )


# --- usage


def test_choices_of_a_missing_option_stand_in_one_line(here: Path) -> None:
    result = cvm("export", save(doubler(), here), "-o", "q")
    assert result.exit_code == 2
    assert "Choose from: c, concrete, " in result.output
    assert "\\" not in result.output


def test_a_group_without_a_command_prints_its_help() -> None:
    result = cvm("trace")
    assert result.exit_code == 2
    assert "\nCommands:\n  diff " in result.output
