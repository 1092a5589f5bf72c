"""The JSON Schema of config files, for editors, is that of the declarations and says what the reader says."""

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from mrt.config import load_config, schema_text
from mrt.errors import BadOption

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "schemas" / "config.json").read_text())
CONFIGS = sorted((ROOT / "configs").glob("*.toml"))


def test_the_schema_is_up_to_date():
    assert json.loads(schema_text()) == SCHEMA, "run `make schema`"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_configs_fit_the_schema(path):
    jsonschema.validate(tomllib.loads(path.read_text()), SCHEMA)


def test_the_example_of_every_key_fits_and_the_schema_has_no_other_key():
    text = (ROOT / "configs" / "README.md").read_text()
    example = text.partition("```toml\n")[2].partition("```")[0]
    jsonschema.validate(tomllib.loads(example), SCHEMA)
    for name, entry in SCHEMA["properties"].items():
        assert f"[{name}" in example
        entry = entry.get("additionalProperties", entry)
        table = SCHEMA["$defs"][entry["$ref"].rpartition("/")[2]]
        for key, described in table["properties"].items():
            assert key in example
            assert described["description"].endswith(".")


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("[preprocessing]\nscale = '1/255'\nmean = 1\nstd = [1, '1/4']", True),
        ("[preprocessing]\nscale = 'x'", False),
        ("[preprocessing]\nmean = []", False),
        ("[preprocessing]\nresize = [9, 10]\ncrop = 8", True),
        ("[preprocessing]\nresize = [9, 10, 11]", False),
        ("[inputs.a]\nresize = 0", False),
        ("[model]\nshapes = { a = [1, 2] }\nvalues = { r = 1 }", True),
        ("[model]\nshapes = { a = [0] }", False),
        ("[model]\noutputs = []", False),
        ("[model]\npath = ''", False),
        ("[calibration]\npercentile = 50", False),
        ("[calibration]\nsamples = 0", False),
        ("[evaluation]\nheld_back = 1", False),
        ("[layers.a]\nbits = 8", True),
        ("[layers.a]\nbits = '8'", False),
        ("[layers.a]\nbits = 'auto'", False),
        ("[quantization]\nbits = 'auto'", True),
        ("[quantization]\nbits = 'all'", False),
        ("[layers]\na = 8", False),
        ("[quantization]\nstream_bits = 9", False),
        ("[refinement]\nfit = 1", False),
        ("[refinements]", False),
    ],
)
def test_the_schema_and_the_reader_agree(text, good, tmp_path):
    judge = jsonschema.Draft202012Validator(SCHEMA)
    assert judge.is_valid(tomllib.loads(text)) == good
    (tmp_path / "c.toml").write_text(text)
    if good:
        load_config(tmp_path / "c.toml")
    else:
        with pytest.raises(BadOption):
            load_config(tmp_path / "c.toml")
