"""The programs of all configs, byte for byte: reorganising the converter must not change one of them.

`program_ids.json` beside this file holds the SHA-256 of every program, made in two ways:

- `invented`: from a calibration table whose ranges follow from the names of values.
  No float model runs, so these digests hold on every machine.
- `measured`: by `mrt convert` as users run it. The float model's numbers depend on the
  processor and on onnxruntime, those of the table's covariances on the kernels that
  numpy's BLAS takes, so these are compared only where all of them are as recorded.

`python -m tests.end_to_end.test_program_ids` records both anew: a change that means to
alter programs commits the new digests and explains why.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path

import onnxruntime
import pytest
from click.testing import CliRunner
from threadpoolctl import threadpool_info

from cvm.file import format as file_format
from mrt.cli import cli
from mrt.config import load_config
from mrt.project import rewritten
from mrt.quantize import quantize
from mrt.quantize.residual_streams import with_stream_bits
from mrt.quantize.transformer_bits import with_transformer_bits
from tests.support.invented_ranges import invented_table
from tests.support.shared_data import needs_shared

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
RECORD = Path(__file__).with_name("program_ids.json")
NAMES = sorted(path.stem for path in CONFIGS.glob("*.toml"))
BUNDLED = ("lenet_digits28", "resnet_digits8")


def machine() -> str:
    """The processor, the libraries and their settings that float numbers depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    keys = {name.strip(): value.strip() for name, value in facts.items()}
    flags = sorted(set(keys.get("flags", "").split()) & {"avx2", "avx512f"})
    processor = f"{keys.get('vendor_id')} {flags}"
    return f"onnxruntime {onnxruntime.__version__}, {processor}, {blas()}"


def blas() -> str:
    """numpy's BLAS: its version, the kernels that it chose, and settings that it obeys."""
    found = [item for item in threadpool_info() if "numpy" in item["filepath"]]
    kernels = sorted(
        f"{item['internal_api']} {item['version']} {item.get('architecture')}"
        for item in found
    )
    settings = sorted(
        name for name in os.environ if name.startswith("OPENBLAS_")
    )
    values = [f"{name}={os.environ[name]}" for name in settings]
    return " ".join(kernels + values)


def invented_digest(name: str) -> str:
    config = load_config(CONFIGS / f"{name}.toml")
    loaded = rewritten(config)
    table = invented_table(loaded.model, loaded.sha256)
    options = with_stream_bits(
        loaded.model,
        with_transformer_bits(loaded.model, config.quantization),
    )
    program = quantize(loaded.model, table, options)
    return hashlib.sha256(file_format.encode(program)).hexdigest()


def measured_digest(name: str, folder: Path) -> str:
    output = folder / f"{name}.cvm"
    words = [
        "convert",
        "--config",
        str(CONFIGS / f"{name}.toml"),
        "-o",
        str(output),
    ]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    return hashlib.sha256(output.read_bytes()).hexdigest()


def recorded(kind: str) -> dict[str, str]:
    return json.loads(RECORD.read_text())[kind]


def test_every_config_is_recorded():
    assert sorted(recorded("invented")) == NAMES
    assert sorted(recorded("measured")) == NAMES


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_models_with_invented_ranges_keep_their_bytes(name):
    assert invented_digest(name) == recorded("invented")[name]


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize("name", NAMES)
def test_every_model_with_invented_ranges_keeps_its_bytes(name):
    assert invented_digest(name) == recorded("invented")[name]


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize("name", NAMES)
def test_every_config_converts_to_the_same_bytes(name, tmp_path):
    if machine() != json.loads(RECORD.read_text())["machine"]:
        pytest.skip(f"float models give other numbers here: {machine()}")
    assert measured_digest(name, tmp_path) == recorded("measured")[name]


def record() -> None:
    """Write `program_ids.json` anew."""
    with tempfile.TemporaryDirectory() as folder:
        content = {
            "machine": machine(),
            "invented": {name: invented_digest(name) for name in NAMES},
            "measured": {
                name: measured_digest(name, Path(folder)) for name in NAMES
            },
        }
    RECORD.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    record()
