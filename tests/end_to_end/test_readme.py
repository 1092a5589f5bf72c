"""The README's Python example does what it says."""

import re
from pathlib import Path

from click.testing import CliRunner

from mrt.cli import cli

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_example_runs(tmp_path, capsys):
    program = tmp_path / "resnet_digits8.cvm"
    result = CliRunner().invoke(
        cli,
        [
            "convert",
            "--config",
            str(ROOT / "configs/resnet_digits8.toml"),
            "-o",
            str(program),
        ],
    )
    assert result.exit_code == 0, result.output
    code = re.search(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    ).group(1)
    code = code.replace("demo/resnet_digits8.cvm", str(program)).replace(
        "calibration_data/", f"{ROOT}/calibration_data/"
    )
    exec(code, {})
    assert capsys.readouterr().out == "[7 9 4 7 0]\n"
