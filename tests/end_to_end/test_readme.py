"""The README's Python examples run as they stand there, one after the other, with the results that are claimed."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = re.findall(
    r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
)


def test_the_examples_run(tmp_path, capsys):
    assert len(EXAMPLES) == 2
    printed = []
    for code in EXAMPLES:
        exec(_moved(code, tmp_path), {})
        printed.append(capsys.readouterr().out)
    shown, agreement = printed[0].splitlines()
    assert shown.startswith("<mrt.Converted 'resnet_digits8-symbol.json': ")
    assert float(agreement) == 1.0
    assert printed[1] == "[7 9 4 7 0]\n"


def _moved(code: str, folder: Path) -> str:
    program = folder / "resnet_digits8.cvm"
    code = code.replace("demo/resnet_digits8.cvm", str(program))
    return code.replace("calibration_data/", f"{ROOT}/calibration_data/")
