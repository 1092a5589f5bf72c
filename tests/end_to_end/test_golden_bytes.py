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
        "ce1f4347e909de0e601fcf19acaf300ea6506cf935eb6e0af8f122767c44cf5c",
    ),
    (
        "resnet_digits8",
        "--scales shift",
        "99072865b526c4020b1a812b93ad9939a47826b1f12ecf46a2d55e602fc82f08",
    ),
    (
        "resnet_digits8",
        "--activation-bits 16",
        "d4246d4ba9ed8900134f9105e379183aab626f983da4d868fa77a1dc5f70c9b9",
    ),
    (
        "resnet_digits8",
        "--bits 4 --scheme affine",
        "30718f59f752247bfda7fb922e01596271b47bc62564799fe25574f9601ea997",
    ),
    (
        "lenet_digits28",
        "",
        "7fb1b847c5518172e92c6bfaa4fbe26c7ee116aeaf15cf94bf6a0141e14aeeb6",
    ),
    (
        "lenet_digits28",
        "--scales shift",
        "a4f2db49e12be5298f8f6714cbf505f31a5bb797cc827baf0ad10fd96b560ecd",
    ),
    (
        "lenet_digits28",
        "--activation-bits 16",
        "6337ca43580461be14fc59179699980172407f5371a04fc1011dd7bbdb6c63b8",
    ),
    (
        "lenet_digits28",
        "--bits 4 --scheme affine",
        "81242f13937f2851b969da22bc1615c7cf0323240e7090fdd9a4d2844724e3b2",
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
