"""What newcomers typed wrong, and what every answer must hold: what was found, where, and what to do.

The calls are those that three people made in their first hours. Each once had an answer; those that had none, or one that
misled, are marked by the word `once`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

import cvm.cli
import mrt.cli
from tests.newcomer.files import write_files
from tests.support.command import NO_ENGINE

PROGRAMS = {"cvm": cvm.cli.cli, "mrt": mrt.cli.cli}


@dataclass(frozen=True)
class Call:
    """A call as it was typed, its exit code, and texts that the answer must hold."""

    typed: str
    code: int
    holds: tuple[str, ...]
    lines: int = 1  # the most that stderr may have


def call(typed: str, code: int, *holds: str, lines: int = 1) -> Call:
    return Call(typed, code, holds, lines)


CALLS = [
    # -- an engineer with an ONNX classifier
    call(
        "mrt convert net.onnx --data pictures",  # once nothing was said
        *(2, "pictures", "nothing says how the model wants them prepared"),
        *("--preset imagenet", "--preset raw", "--scale, --mean and --std"),
        lines=9,
    ),
    call(
        "mrt convert net.onnx --data pictures --input-dtype u8",  # once nothing
        *(2, "pictures", "--preset imagenet"),
        lines=9,
    ),
    call(  # once refused, in the words of a library
        "mrt convert forest.onnx --data rows.npz -o forest_2.cvm",
        *(0, "wrote forest_2.cvm", "agreement 32 of 32"),
    ),
    call(
        "mrt evaluate forest.onnx forest.cvm --data rows.npz",
        *(0, "top-1        100.00 %", "equal in 'output_label': 100.00 %"),
    ),
    call(
        "cvm run net.cvm --input far.npz --real",  # once nothing was said
        *(0, "warning: input 'x': ", " of 7,680 values (9"),
        *("the range of the calibration", "--strict refuses them"),
    ),
    call(
        "cvm run net.cvm --input far.npz --real --strict",
        *(2, "input 'x': ", "lie outside"),
    ),
    call(
        "mrt evaluate net.onnx net.cvm --data unlabelled.npz",
        *(0, "no accuracy: the data has no labels (y in an .npz, labels.csv"),
    ),
    call(
        "mrt evaluate net.onnx net.cvm --data far.npz",  # once figures alone
        *(0, "warning: ", "output 'y' has", "Calibrate on samples like these"),
    ),
    call(
        "mrt evaluate net.cvm net.onnx --data data.npz",
        *(2, "net.cvm is the program and net.onnx the model: swap them"),
        "mrt evaluate MODEL P.cvm",
    ),
    call(
        "mrt compare net.cvm net.onnx --data data.npz",
        *(2, "swap them", "mrt compare MODEL P.cvm"),
    ),
    call(
        "mrt evaluate other.onnx net.cvm --data data.npz",
        *(0, "warning: net.cvm was made from another model (SHA-256 "),
        lines=4,
    ),
    call(
        "mrt evaluate other.onnx net.cvm --data data.npz --require agreement=0.1",
        *(1, "net.cvm was made from another model"),
        lines=4,
    ),
    call(
        "mrt evaluate net.onnx net.cvm --data data.npz --require agreement=1.1",
        *(2, "agreement=1.1", "a share of the samples is at most 1"),
    ),
    call(
        "mrt evaluate net.onnx net.cvm --data far.npz --fail-below agreement=0.99",
        *(1, "agreement is 0.", "expected at least 0.99"),
        lines=2,
    ),
    call(
        "mrt evaluate net.onnx net.cvm --data data.npz --require agrement=0.9",
        *(2, "agrement", "agreement", "snr_db"),
    ),
    call(
        "mrt convert net.onnx --data data.npz --target-agreement 0.99",
        *(
            2,
            "20 held-back samples are too few",
            "of 99 %",
            "25 held-back samples",
        ),
        "Give more samples",
    ),
    call(
        "mrt convert net.onnx --data nhwc.npz",
        *(2, "nhwc.npz: array 'x'", "[8, 8, 3] (layout 'as is')"),
        *("[1, 3, 8, 8]", "--layout NHWC"),
    ),
    call(
        "mrt convert net.onnx --data nhwc.npz --input-dtype u8 --preset raw",
        *(2, "nhwc.npz: array 'x'", "--layout NHWC"),
    ),
    call(
        "mrt convert net.onnx --data names.npz",
        *(2, "names.npz: has no array 'x' for the model's input"),
        *("it has images, labels", "rename one", "mrt init"),
    ),
    call(
        "mrt convert net.onnx --data nan.npz",
        *(2, "array 'x', sample 3", "192 of 192 values are NaN or infinite"),
        "remove the sample",
    ),
    call(
        "mrt convert net.onnx --data pickled.npy",
        *(2, "pickled.npy", "Python objects, which are never loaded"),
        "expected real numbers",
    ),
    call(
        "mrt convert net.onnx --data broken --preset raw",
        *(2, "broken/1.png: cannot be read as an image", "replace it"),
    ),
    call("mrt convert net.onnx --data classes --preset raw -o c.cvm", 0),
    call(
        "mrt convert net.onnx --data large.png",
        *(2, "large.png: expected an .npz, a .npy or a folder of images"),
    ),
    call(
        "cvm run bytes.cvm --input large.png",
        *(2, "large.png: is 64x48 pixels, the input 'x' 8x8"),
        "resize or crop it first",
    ),
    call(
        "cvm run bytes.cvm --input grey.png",  # once taken without a word
        *(0, "note: grey.png: grey, read as if in colour"),
    ),
    call(  # once numbers alone
        "cvm run bytes.cvm --input pictures",
        *(0, "  0.png: ", "  1.png: ", "  2.png: ", "; largest at "),
    ),
    call(
        "cvm run net.cvm --input pictures/0.png",
        *(2, "pictures/0.png", "'x' i8[1, 3, 8, 8]"),
        "mrt convert --input-dtype u8",
    ),
    call(
        "cvm run net.cvm --input pictures",
        *(2, "pictures: ", "mrt convert --input-dtype u8"),
    ),
    call(
        "cvm run net.cvm --input data.npz",
        *(2, "input 'x': holds float32; expected i8 integers", "--real"),
    ),
    call(
        "cvm run net.cvm --input integers.npz",
        *(2, "input 'x', sample 0, index [0, 0, 0, 0]: value 130 is outside"),
        "-128..127",
    ),
    call(
        "cvm run net.cvm --input wrong_shape.npz --real",
        *(2, "shape [40, 3, 8, 5]; expected [1,3,8,8] or, for N samples,"),
        "[N,3,8,8]",
    ),
    call(
        "mrt convert net.onnx --bit 8",
        *(2, "No such option '--bit'", "Did you mean", "'--bits'"),
        lines=4,
    ),
    call("cvm verify net.cvm --quiet", 0),  # once "did you mean --bits"
    call(
        "mrt convert --config misspelt.toml",
        *(2, "misspelt.toml", "means", "[preprocessing]", "mean"),
    ),
    call(
        "mrt convert --config section.toml",
        *(2, "section.toml", "preprocesing", "preprocessing"),
    ),
    call(
        "mrt convert --config text.toml",
        *(2, "text.toml", "[quantization]", "bits", "'8'"),
    ),
    call(
        "mrt convert --config broken.toml",
        *(2, "broken.toml: is not TOML", "line 5"),
    ),
    call(
        "mrt convert net.onnx --data data.npz --bits 9",
        *(2, "--bits 9: activations take 2..8 or 16 bits"),
        "for weights alone give weight_bits 9 (--weight-bits 9)",
    ),
    *(
        call(
            f"mrt convert net.onnx --data data.npz --bits {bits}",
            *(2, f"--bits {bits}: expected auto or 2..8; for 16: "),
            "--activation-bits 16 --weight-bits 15",
        )
        for bits in ("64", "16", "eight")
    ),
    call(
        "mrt evaluate net.cvm --data data.npz",  # once the program was missed
        *(2, "no model is given: mrt evaluate MODEL P.cvm --data D"),
    ),
    call(
        "mrt evaluate net.onnx --data data.npz",
        *(2, "no program is given: mrt evaluate MODEL P.cvm --data D"),
    ),
    call(
        "mrt evaluate net.onnx net.cvm --data from_1.npz",
        *(2, "class 10 among the labels", "'y' has 10 classes"),
        *("numbered from 0 to 9: do yours begin at 1?", "--class-output"),
    ),
    call(
        "mrt convert net.onnx --data unnamed --preset raw",
        *(2, "unnamed/labels.csv: names no file", "file,class"),
    ),
    call(
        "mrt convert net.onnx --data pictures --preset raw --mean 1,2",
        *(2, "--mean 1,2: expected 1 or 3 numbers", "[1, 3, 8, 8]"),
    ),
    call(
        "mrt convert net.onnx --data data.npz --std 1,2,3,4",
        *(2, "--std 1,2,3,4: expected 1 or 3 numbers"),
    ),
    *(
        call(
            f"mrt convert net.onnx --data data.npz --refine {stages}",
            *(2, f"--refine {stages}: '{alone}' stands alone"),
        )
        for stages, alone in (("none,all", "all"), ("fit,none", "none"))
    ),
    call(
        "mrt convert --config layer.toml",
        *(2, "[layers.yy]", "did you mean y?", "mrt rewrite"),
    ),
    call(
        "mrt convert --config unweighted.toml",  # once taken without effect
        *(2, "[layers.x] weight_bits = 4: 'x' (an input) has no weights"),
    ),
    call(
        "mrt convert layer.toml",
        *(2, "layer.toml: a config", "mrt convert --config layer.toml"),
    ),
    call(
        "mrt convert net.onnx --data pictures --preset imgnet",
        *(2, "--preset imgnet: did you mean imagenet? expected one of"),
    ),
    call(
        "mrt convert pointer.onnx --data data.npz",
        *(2, "pointer.onnx: a pointer of Git LFS", "git lfs pull"),
    ),
    call(
        "mrt export digits-symbol.json --data digits.npz -o empty/e.onnx",
        *(0, "wrote empty/e.onnx: "),
    ),
    call(
        "mrt init net.onnx --data data.npz -o by_option.toml",
        *(0, "wrote by_option.toml"),
    ),
    call("mrt init net.onnx", 2, "no data is given: mrt init MODEL DATA"),
    call(
        "mrt init net.onnx data.npz --data data.npz",
        *(2, "both DATA and --data are given"),
    ),
    call(
        "mrt convert net.onnx --data data.npz --samples 1 -o one.cvm",
        *(0, "calibrated on  1 sample\n"),
    ),
    call(
        "mrt calibrate net.onnx --data data.npz --samples 1 -o one.json",
        *(0, " ranges from 1 sample\n"),
    ),
    call(
        "cvm import net.onnx -o imported.cvm",  # once without the file's name
        *(2, "net.onnx: not a TOSA file", "mrt convert"),
    ),
    call(
        "mrt convert open_text.onnx --data words.npz",  # once the data's fault
        *(2, "input 'x': holds string; expected floats, bool or integers"),
        lines=3,
    ),
    call(
        "mrt convert opset99.onnx",
        *(2, "opset99.onnx: opset 99; supported are 1 to 28"),
        "export the model for one of these",
    ),
    call(
        "mrt convert custom.onnx",
        *(2, "fancy1 (FancyOp)", "'com.acme'", "--outputs"),
        lines=3,
    ),
    call(
        "mrt convert random.onnx",
        *(2, "y (RandomNormalLike)", "random numbers", "--outputs"),
        lines=3,
    ),
    call(
        "mrt convert text.onnx",
        *(2, "input 'x': holds string; expected floats, bool or integers"),
        lines=3,
    ),
    call(
        "mrt convert open.onnx",
        *(2, "input 'x' has unknown dimensions", "--shape x=1,3,?,?"),
        "--data",
    ),
    call(
        "mrt convert net.onnx --data data.npz --shape x=1,5",
        *(2, "--shape x=1,5: expected 4 dimensions"),
    ),
    *(
        call(
            f"mrt convert {name}.onnx",
            *(2, f"{name}.onnx: ", "bytes that are not an ONNX file"),
            "copy or export it again",
        )
        for name in ("cut", "junk")
    ),
    call(
        "mrt convert net.pt",
        *(2, "net.pt: a file of PyTorch", "torch.onnx.export"),
    ),
    call(
        "mrt convert net.onnx --data data.npz -o nodir/a.cvm",
        *(2, "nodir/a.cvm: cannot be written", "does not exist"),
    ),
    call(
        "mrt convert net.onnx --data data.npz -o -",  # once a file named -
        *(2, "standard output", "name a file"),
    ),
    call(
        "cvm run net.cvm --input data.npz --real -o out.csv",  # once an .npz
        *(2, "out.csv: outputs are written as .npz", "--json"),
    ),
    call(
        "cvm export net.cvm --to c -o r.onnx",  # once a folder of that name
        *(2, "r.onnx: .onnx is the suffix of ONNX models", "name it r"),
    ),
    *(  # once written under these names
        call(
            typed,
            *(2, f"{file}: {file[1:]} is the suffix of", f"name it r{right}"),
        )
        for typed, file, right in (
            (
                "mrt convert net.onnx --data data.npz -o r.onnx",
                "r.onnx",
                ".cvm",
            ),
            (
                "mrt convert net.onnx --data data.npz --write-config r.json",
                *("r.json", ".toml"),
            ),
            (
                "mrt report net.onnx net.cvm --data data.npz -o r.pdf",
                *("r.pdf", ".html"),
            ),
            (
                "mrt calibrate net.onnx --data data.npz -o r.npz",
                *("r.npz", ".json"),
            ),
            ("mrt export digits-symbol.json -o r.pt", "r.pt", ".onnx"),
            ("mrt probe net.onnx -o r.toml", "r.toml", ".cvm"),
            (
                "cvm run net.cvm --input data.npz --real --receipt r.npz",
                *("r.npz", ".json"),
            ),
            ("cvm plan net.cvm -o r.cvm", "r.cvm", ".plan"),
            ("cvm strip net.cvm -o r.json", "r.json", ".cvm"),
        )
    ),
    call("mrt convert net.onnx --data data.npz -o program.v1.2", 0),
    call(  # once the last of them
        "mrt convert net.onnx --data data.npz --data far.npz",
        *(2, "Option '--data' is given 2 times, with 'data.npz' and 'far.npz'"),
        "give it once",
        lines=4,
    ),
    call(
        "cvm run net.cvm --input data.npz --real --input=far.npz",
        *(2, "Option '--input' is given 2 times", "'data.npz' and 'far.npz'"),
        lines=4,
    ),
    call(
        "cvm run net.cvm --input data.npz --real -o a.npz -o b.npz",
        *(2, "Option '-o' is given 2 times, with 'a.npz' and 'b.npz'"),
        lines=4,
    ),
    call("cvm run net.cvm --input data.npz --real --real -q -q", 0),
    *(  # once the folder in which they were typed
        call(typed, 2, f"Invalid value for '{name}", "path is empty", lines=4)
        for typed, name in (
            ("mrt convert net.onnx --data EMPTY", "--data"),
            ("mrt convert net.onnx -o EMPTY", "-o"),
            ("mrt show EMPTY", "[MODEL]"),
            ("cvm run net.cvm --input EMPTY", "--input"),
            ("cvm show EMPTY", "P.cvm"),
        )
    ),
    # -- an owner of MXNet checkpoints
    call("mrt convert digits-symbol.json --data digits.npz", 0),  # once refused
    call("mrt evaluate digits-symbol.json made.cvm --data digits.npz", 0),
    call("mrt export digits-symbol.json --data digits.npz -o d.onnx", 0),
    call(
        "mrt convert digits-symbol.json",
        *(2, "the shape of input 'data' is not known", "--shape", "--data"),
    ),
    call(
        "mrt convert alone-symbol.json --data digits.npz",
        *(2, "alone-symbol.json: no parameters found", "alone.params"),
        *("--params", "--random-weights SEED"),
    ),
    call(
        "mrt convert two-symbol.json --data digits.npz",
        *(2, "several parameter files: two-0039.params, two-0040.params"),
        *("--params", "--epoch N"),
    ),
    call(
        "mrt convert stranger-symbol.json --params digits-0000.params --data digits.npz",
        *(2, "parameters do not suit the symbol", "more", "another model"),
        lines=13,
    ),
    call(
        "mrt convert digits-0000.params",
        *(2, "holds parameters; give the symbol's .json file", "--params"),
    ),
    # -- an auditor
    call(
        "cvm replay receipt.json net.cvm --input data.npz --real",
        *(2, "net.cvm: is a program, not a receipt"),
        "cvm replay P.cvm R.json",
    ),
    call(
        "cvm replay net.cvm receipt.json --input far.npz --real",
        *(1, "no match: sample 0, input 'x'", "expected", "found"),
        lines=1,
    ),
    call(
        "cvm replay net.cvm forged.json --input data.npz --real",
        *(2, "forged.json: samples[0] lacks 'outputs'"),
    ),
    call(  # once the unknown key alone
        "cvm replay net.cvm net.json --input data.npz --real",
        *(2, "net.json: is not a receipt (format cvm-receipt-2): "),
        "has the unknown key 'channel_means'",
    ),
    call(
        "cvm show cut.cvm",
        *(2, "cut.cvm: ", "the file ends at byte 1000"),
    ),
    call(
        "cvm verify flipped.cvm --expect ID",  # once exit code 0
        *(1, "not the program that is expected", "expected", "found"),
    ),
    call(
        "mrt convert net.onnx data.npz",  # once nothing of --data
        *(2, "extra argument (data.npz)", "--data", "--table"),
        lines=4,
    ),
    call(
        "mrt convert net.onnx --data data.npz --mean 0.4 0.5 0.6",
        *(2, "joined by commas: 1,2,3"),
        lines=4,
    ),
    call(
        "cvm replay net.cvm receipt.json data.npz --input data.npz",
        *(2, "extra argument (data.npz)", "Other files are named by --input"),
        lines=4,
    ),
    call(
        "mrt convert digits-symbol.json --table receipt.json",
        *(2, "receipt.json: is not a 'mrt calibration table'"),
        "mrt calibrate writes one",  # once `calibrate again`
    ),
    call(
        "mrt convert digits-symbol.json --table net.cvm",  # once a codec
        *(2, "net.cvm: is not a calibration table (it holds no text)"),
        "mrt calibrate writes one",
    ),
    call(
        "mrt export digits-symbol.json --data receipt.json -o d.onnx",
        *(2, "receipt.json: is not a 'mrt calibration table'"),
    ),
    call(
        "mrt show receipt.json",  # once `unknown key`
        *(2, "receipt.json: not an MXNet symbol", "-symbol.json"),
    ),
    call(
        "cvm run net.onnx --input data.npz",  # once the first bytes alone
        *(2, "net.onnx: not a program", "mrt convert makes programs"),
    ),
    call(
        "cvm run empty --input data.npz",  # once `Is a directory`
        *(2, "empty: a folder, not a program", "mrt convert"),
    ),
    call(
        "mrt evaluate net.onnx . --data data.npz",
        *(2, ".: a folder, not a program; it holds bytes.cvm"),
    ),
    call(
        "mrt init net.onnx empty -o e.toml",  # once a config to be said
        *(2, "empty: holds no images", "labels.csv"),
    ),
    call(
        "mrt evaluate net.onnx net.cvm --data texts.npz",  # once no way
        *(2, "texts.npz: array 'y': holds <U3", "the numbers of classes"),
    ),
    call(
        "mrt evaluate net.onnx net.cvm --data three.npz",  # once nothing
        *(0, "three.npz: 3 samples are few", "from 44 to 100 %"),
    ),
    call(
        "mrt evaluate net.onnx net.cvm --data data.npz --fail-below agreement=99.9%",
        *(1, "agreement is", "expected at least 0.999"),
    ),
    call(
        "mrt convert net.onnx --table net.json --data data.npz --require snr=90 -o n.cvm",
        *(1, "snr is", "expected at least 90", "nothing was written"),
    ),
    call(
        "cvm verify receipt.json",
        *(2, "receipt.json: not a program", "(.cvm)"),
    ),
    call(
        "mrt evaluate net.onnx net.cvm --data one_hot.npz",  # once no way
        *(2, "one_hot.npz: array 'y': has shape [40, 10]", "argmax(axis=1)"),
    ),
    *(
        call(  # once refused, as classes
            typed,
            *(0, "array 'y' holds no numbers of classes and is not read"),
            "mrt evaluate --metric",
        )
        for typed in (
            "mrt convert value.onnx --data reals.npz",
            "mrt compare net.onnx net.cvm --data reals.npz",
            "mrt report net.onnx net.cvm --data reals.npz -o net.html",
        )
    ),
    call(  # once refused, and then the advice was --class-output
        "mrt evaluate value.onnx value.cvm --data reals.npz",
        *(0, "array 'y' holds no numbers of classes and is not read"),
        "no accuracy: no output holds classes; --metric measures",
    ),
    call(  # once the function got no targets
        "mrt evaluate value.onnx value.cvm --data reals.npz --metric errors_of_reals:mean",
        *(0, "  metric  ", "array 'y' holds no numbers of classes"),
    ),
    call("mrt convert empty.json", 2, "empty.json: the file is empty"),
    call("cvm run no.cvm --input data.npz", 2, "no.cvm: No such file"),
    call("mrt help", 0, "Start with:"),
    call("cvm help", 0, "Start with:"),
]


@pytest.fixture(name="desk", scope="module")
def _desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with all files, and what right calls made from them."""
    folder = tmp_path_factory.mktemp("desk")
    before = Path.cwd()
    os.chdir(folder)
    write_files()
    digits = "calibration_data/digits8/test.npz"
    root = Path(__file__).resolve().parents[2]
    Path("digits.npz").write_bytes((root / digits).read_bytes())
    for typed in (
        "mrt convert net.onnx --data data.npz",
        "mrt convert forest.onnx --data rows.npz",
        "mrt convert value.onnx --data data.npz",
        "mrt calibrate net.onnx --data data.npz -o net.json",
        "mrt convert digits-symbol.json --data digits.npz -o made.cvm",
        "mrt convert net.onnx --data pictures --preset 0..1 --input-dtype u8 -o bytes.cvm",
        "cvm run net.cvm --input data.npz --real --receipt receipt.json",
    ):
        assert _answer(typed)[0] == 0, typed
    program = Path("net.cvm").read_bytes()
    Path("cut.cvm").write_bytes(program[:1000])
    flipped = program[:-1500] + bytes([program[-1500] ^ 1]) + program[-1499:]
    Path("flipped.cvm").write_bytes(flipped)
    receipt = json.loads(Path("receipt.json").read_text())
    del receipt["samples"][0]["outputs"]
    Path("forged.json").write_text(json.dumps(receipt))
    yield folder
    os.chdir(before)


def _answer(typed: str) -> tuple[int, str, str]:
    name, *words = typed.split()
    words = ["" if word == "EMPTY" else word for word in words]
    result = CliRunner().invoke(PROGRAMS[name], words)
    crashed = result.exception is not None
    assert not crashed or isinstance(result.exception, SystemExit), typed
    stderr = result.stderr.replace(NO_ENGINE, "")
    return result.exit_code, result.stdout, stderr


@pytest.mark.parametrize("wrong", CALLS, ids=lambda item: item.typed)
def test_the_answer_holds_what_was_found_where_and_what_to_do(
    desk: Path, wrong: Call
) -> None:
    typed = wrong.typed
    if typed.endswith(" ID"):
        digest = _answer("cvm digest net.cvm")[1].split()[1]
        typed = f"{typed.removesuffix('ID')}{digest}"
    code, stdout, stderr = _answer(typed)
    answer = stdout + stderr
    assert code == wrong.code, answer
    for text in wrong.holds:
        assert text in answer
    if code == 2:
        assert stdout == ""
    if code:
        assert stderr.count("\n") <= wrong.lines
        assert "Traceback" not in answer
