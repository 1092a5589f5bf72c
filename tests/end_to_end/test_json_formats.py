"""What `--json` prints fits the schema of its format, and the page lists every format."""

import json
import re
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import helper

from cvm.cli import cli as cvm_cli
from cvm.file import format as file_format
from mrt.cli import cli as mrt_cli
from tests.support.run_programs import decoder

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "docs" / "schemas"
MODEL = ROOT / "calibration_data/digits8/resnet_digits8-symbol.json"
CONFIG = ROOT / "configs" / "resnet_digits8.toml"
TEST = ROOT / "calibration_data" / "digits8" / "test.npz"
HAS_WASM = all(map(shutil.which, ("clang", "wasm-ld")))
FORMATS = sorted(
    path.name.removesuffix(".schema.json")
    for path in SCHEMAS.glob("*.schema.json")
)


@pytest.fixture(name="here", scope="module")
def _here(tmp_path_factory) -> Path:
    """A folder with a program and the report of its conversion."""
    folder = tmp_path_factory.mktemp("json")
    words = ["convert", "--config", CONFIG, "-o", folder / "p.cvm"]
    run(mrt_cli, *words, "--report", folder / "r.json")
    fitting = ("--scales", "shift", "--activation-bits", 7, "--refine", "none")
    run(mrt_cli, *words[:-1], folder / "shift7.cvm", *fitting)
    run(
        cvm_cli,
        "export",
        folder / "p.cvm",
        "--to",
        "tosa",
        "-o",
        folder / "for_import",
    )
    program = (folder / "p.cvm").read_bytes()
    other = program[:-30_000] + bytes([program[-30_000] ^ 1])
    (folder / "other.cvm").write_bytes(other + program[-29_999:])
    with np.load(TEST) as arrays:
        np.savez(folder / "x.npz", data=arrays["data"][:3])
        np.savez(folder / "one.npz", data=arrays["data"][:1])
    (folder / "proof").mkdir()
    (folder / "proof" / "public.json").write_text('["1", "2"]')
    key = {"vk_alpha_1": ["7"], "vk_gamma_2": [], "vk_delta_2": ["1"]}
    (folder / "key.json").write_text(json.dumps(key))
    refused = helper.make_model(
        helper.make_graph(
            [helper.make_node("Det", ["x"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", 1, ["n", 2, 2])],
            [helper.make_tensor_value_info("y", 1, None)],
        )
    )
    onnx.save(refused, folder / "refused.onnx")
    file_format.write(decoder(), folder / "decoder.cvm")
    words = ["generate", folder / "decoder.cvm", "--prompt-tokens", "0,1"]
    run(cvm_cli, *words, "--receipt", folder / "generated.json")
    for name in ("p", "other"):
        run(
            cvm_cli,
            *("run", folder / f"{name}.cvm", "--input", folder / "x.npz"),
            *("--real", "--receipt", folder / f"{name}.receipt.json"),
            *("--trace", folder / f"{name}.trace.json"),
        )
    return folder


def run(cli, *words: object, code: int = 0) -> str:
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.stdout


def printed(here: Path, format_name: str) -> list[str]:
    """Every text of a format, by the commands that print it."""
    p = here / "p.cvm"
    mrt_words = ("--config", CONFIG, p, "--json", "--samples", 8)
    other, x = here / "other.cvm", here / "x.npz"
    real = ("--input", x, "--real", "--json")
    receipt, trace = here / "p.receipt.json", here / "p.trace.json"
    tosa = here / "for_import" / "p.tosa"
    first_config = here / "first.toml"
    config = ("--config", CONFIG, "--samples", 8)
    untold = (MODEL, "--shape", "data=1,1,8,8")
    generate = ("generate", here / "decoder.cvm", "--prompt-tokens", "0,1")
    texts = {
        "cvm-verify-1": [
            ("verify", p, "--json"),
            ("verify", p, "--json", "--all"),
            ("verify", p, "--json", "--expect", "0" * 64),
        ],
        "cvm-run-1": [
            ("run", p, *real),
            ("run", p, *real, "-o", here / "o.npz"),
            ("run", p, *real, "--receipt", here / "again.json"),
        ],
        "cvm-generate-1": [
            (*generate, "--json"),
            (*generate, "--json", "-o", here / "t.npz"),
            (*generate, "--json", "--receipt", here / "g.json"),
        ],
        "cvm-replay-1": [
            ("replay", p, receipt, *real),
            ("replay", other, receipt, *real),
            (*generate, "--json", "--replay", here / "generated.json"),
        ],
        "cvm-diff-1": [
            ("diff", p, p, "--json"),
            ("diff", p, other, "--json"),
        ],
        "cvm-trace-diff-1": [
            ("trace", "diff", trace, trace, "--json"),
            ("trace", "diff", trace, here / "other.trace.json", "--json"),
        ],
        "cvm-digest-1": [("digest", p, "--json")],
        "cvm-export-1": [
            ("export", p, "--to", "c", "-o", here / "c", "--json"),
            ("export", p, "--to", "mlir", "-o", here / "mlir", "--json"),
            ("export", p, "--to", "onnx", "-o", here / "onnx", "--json"),
            ("export", p, "--to", "tosa", "-o", here / "tosa", "--json"),
            (
                *("export", here / "shift7.cvm", "--to", "cortex"),
                *("-o", here / "cortex", "--json"),
            ),
            *(
                [("export", p, "--to", "web", "-o", here / "web", "--json")]
                if HAS_WASM
                else []
            ),
        ],
        "cvm-cost-1": [("cost", p, "--json")],
        "cvm-plan-1": [("show", "--plan", p, "--json")],
        "cvm-verify-proof-1": [
            (
                *("verify-proof", p, here / "proof"),
                *("--key", here / "key.json", "--json"),
            )
        ],
        "cvm-commit-1": [
            (
                *("commit", p, "--input", here / "one.npz", "--real"),
                *("--opening", here / "salts.json", "--json"),
            )
        ],
        "cvm-secret-1": [("show", "--secret", p, "--json")],
        "cvm-plan-file-1": [("plan", p, "-o", here / "p.plan", "--json")],
        "cvm-bench-1": [("bench", p, "--json", "--repetitions", 2)],
        "mrt-show-1": [
            ("show", "--config", CONFIG, "--json"),
            ("show", here / "refused.onnx", "--json"),
        ],
        "cvm-import-1": [
            ("import", tosa, "-o", here / "tosa.cvm", "--json"),
        ],
        "mrt-convert-1": [
            ("convert", *config, "-o", here / "again.cvm", "--json"),
            ("convert", *untold, "-o", here / "noise.cvm", "--json"),
        ],
        "mrt-calibrate-1": [
            ("calibrate", *config, "-o", here / "table.json", "--json"),
        ],
        "mrt-init-1": [("init", MODEL, x, "-o", first_config, "--json")],
        "mrt-export-1": [("export", *untold, "-o", here / "m.onnx", "--json")],
        "mrt-rewrite-1": [
            ("rewrite", *untold, "-o", here / "simple.onnx", "--json"),
        ],
        "mrt-operators-1": [
            ("operators", "--frontend", name, "--json")
            for name in ("onnx", "mxnet")
        ],
        "mrt-evaluate-2": [("evaluate", *mrt_words)],
        "mrt-compare-1": [("compare", *mrt_words)],
    }
    if format_name == "mrt-report-1":
        return [(here / "r.json").read_text()]
    cli = mrt_cli if format_name.startswith("mrt") else cvm_cli
    negative = {
        here / "refused.onnx",
        other,
        here / "other.trace.json",
        here / "proof",  # its signals name no program
        "0" * 64,
    }
    return [
        run(cli, *words, code=int(not negative.isdisjoint(words)))
        for words in texts[format_name]
    ]


@pytest.mark.parametrize("format_name", FORMATS)
def test_what_is_printed_fits_the_schema(here, format_name):
    schema = json.loads((SCHEMAS / f"{format_name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for text in printed(here, format_name):
        content = json.loads(text)
        assert content["format"] == format_name
        jsonschema.validate(content, schema)
        content["unheard"] = 1
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(content, schema)


def test_the_page_lists_every_format():
    page = (ROOT / "docs" / "json.md").read_text()
    assert (
        sorted(re.findall(r"\(schemas/(\S+)\.schema\.json\)", page)) == FORMATS
    )


def test_the_facts_of_a_conversion_are_those_that_cvm_finds_in_the_file(here):
    path = here / "facts.cvm"
    words = ("convert", "--config", CONFIG, "-o", path, "--json")
    facts = json.loads(run(mrt_cli, *words))
    digest = json.loads(run(cvm_cli, "digest", path, "--json"))
    proof = json.loads(run(cvm_cli, "verify", path, "--json"))
    assert facts["written"] == str(path)
    assert facts["program"] == digest["program"]
    assert facts["metadata"] == digest["metadata"]
    assert facts["bytes"] == path.stat().st_size
    assert facts["slack_hundredths"] == proof["tightest"]["slack_hundredths"]
    assert facts["cost"] == proof["cost"]
    assert facts["samples"] == 256 and not facts["synthetic"]
    assert facts["quality"][
        "held_back"
    ]  # the config names others to evaluate on
    assert facts["quality"]["verdict"] == "good"
