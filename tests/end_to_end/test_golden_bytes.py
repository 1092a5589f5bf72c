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
        "355b174b40f215b5e1513f686430293374e73e49bd6d9dda535fa16b06e0eb8c",
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
        "00007091e70f38c3348574a1141724258b6e1ccc6d6cf5494ea8517fb952a3af",
    ),
    (
        "lenet_digits28",
        "",
        "6c009eab4309672ee2b32b7e08abd1101fd9552cde03b6fa42e8f1b9f1fcfda4",
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
        "a273a0a4295887de5ebfbd78d4b8e7e641a810a351108050469d059c86486a81",
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
