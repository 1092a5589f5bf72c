"""The same model, table and options give the same bytes on every machine: tables and the SHA-256 of what they must give.

A change that means to alter the programs `mrt` writes alters these digests too, and says so in its commit. No other
change, and no other processor, numpy or Python, may.
"""

import hashlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from mrt.cli import cli

ROOT = Path(__file__).resolve().parent.parent.parent
TABLES = Path(__file__).resolve().parent / "golden"
PROGRAMS = [
    (
        "resnet_digits8",
        "",
        "f3761ebdface6e62b60b5ca997fbd9a2f1ce5fc02c3163d69d47a40df9e46463",
    ),
    (
        "resnet_digits8",
        "--scales shift",
        "99072865b526c4020b1a812b93ad9939a47826b1f12ecf46a2d55e602fc82f08",
    ),
    (
        "resnet_digits8",
        "--activation-bits 16",
        "8d11cb06a2b24e367711d597ba3762ee25f12ede8f1e7d88c90dc17e06282039",
    ),
    (
        "resnet_digits8",
        "--bits 4 --scheme affine",
        "5abae7eb8710f9dc768f04d06ca780445923b5a89fd46083d13b16edf5369cd1",
    ),
    (
        "lenet_digits28",
        "",
        "96f225070e895036e4696a9cf409a3cd982a6a84999241bf75ddbe89823df85c",
    ),
    (
        "lenet_digits28",
        "--scales shift",
        "a4f2db49e12be5298f8f6714cbf505f31a5bb797cc827baf0ad10fd96b560ecd",
    ),
    (
        "lenet_digits28",
        "--activation-bits 16",
        "041d2c129274a3d739781bda8adac719964ad6b618ddb6ac8d7d84707feb31f4",
    ),
    (
        "lenet_digits28",
        "--bits 4 --scheme affine",
        "cdbb5dfd22ca9ee0ad2d5d8fb508088dc01c64d39bfa28608a85060e046e1954",
    ),
]


@pytest.mark.parametrize(("name", "options", "digest"), PROGRAMS)
def test_the_bytes_of_a_program_are_the_same_for_ever(
    name, options, digest, tmp_path
):
    words = [
        "--config",
        str(ROOT / f"configs/{name}.toml"),
        "--table",
        str(TABLES / f"{name}.table.json"),
    ]
    result = CliRunner().invoke(
        cli,
        ["convert", *words, *options.split(), "-o", str(tmp_path / "p.cvm")],
    )
    assert result.exit_code == 0, result.output
    assert (
        hashlib.sha256((tmp_path / "p.cvm").read_bytes()).hexdigest() == digest
    )
