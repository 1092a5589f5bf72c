"""`mrt report` on a real checkpoint, and its page in a real browser where there is one."""

import re
import shutil
import subprocess
import tomllib
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mrt.cli import cli
from tests.support.html_pages import Page

ROOT = Path(__file__).resolve().parent.parent.parent
DIGITS = ROOT / "calibration_data/digits8"
MODEL, TEST = DIGITS / "resnet_digits8-symbol.json", DIGITS / "test.npz"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# The width that the page takes of a window, in a frame: browsers open none as narrow.
PROBE = """<!doctype html><iframe id="f" srcdoc="{page}" style="width:{width}px;height:800px;border:0"></iframe>
<p id="p">loading</p><script>
const frame = document.getElementById("f");
frame.onload = () => {{
  const root = frame.contentDocument.documentElement, wide = root.clientWidth;
  const out = [...root.querySelectorAll("body *")].filter((item) => !item.closest(".scroll svg")
    && item.getBoundingClientRect().right > wide + 1).map((item) => item.tagName + "." + item.className);
  document.getElementById("p").textContent = "{width} takes " + (root.scrollWidth - wide) + " more: " + out.slice(0, 5).join(" ");
}};
</script>"""


def mrt(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def convert(place: Path, *words: object) -> Path:
    result = mrt(
        *("convert", MODEL, "--data", DIGITS / "calibration.npz"),
        *("--samples", 30, *words, "-o", place),
    )
    assert result.exit_code == 0, result.output
    return place


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report") / "digits.cvm"
    # At 3 bits, so that there is something to see.
    return convert(place, "--bits", 3, "--refine", "none")


@pytest.fixture(scope="module")
def text(program: Path) -> str:
    result = mrt(
        "report", MODEL, program, "--data", TEST, "--layer-samples", 20
    )
    assert result.exit_code == 0, result.output
    page = program.with_suffix(".html")
    assert result.stdout.splitlines()[1] == f"wrote {page}"
    content = page.read_text()
    assert result.stdout.splitlines()[0] in unescape(content)
    assert "layers compared" not in result.stderr
    return content


def test_the_page_says_what_evaluate_says(program, text):
    found = Page(text).text
    figures = mrt("evaluate", MODEL, program, "--data", TEST).stdout
    for line in figures.splitlines():
        if line.strip().startswith("top-1"):
            shares = [
                f"{float(share):.1f}"
                for share in re.findall(r"(\d+\.\d+) % ", line)
            ]
    assert len(shares) == 2
    assert f"top-1 {shares[1]} % against float's {shares[0]} %" in found
    assert "resnet_digits8-symbol.json in integers" in found
    assert "on 360 samples of test.npz" in found


def test_every_layer_is_drawn_and_changed_digits_are_seen(text):
    found = Page(text)
    assert "res_dense0_fwd" in found.text
    assert 8 <= len(found.named("rect")) < 60
    pictures = found.named("img")
    assert 1 <= len(pictures) <= 10
    assert all(
        str(item["src"]).startswith("data:image/png") for item in pictures
    )


def test_the_first_line_that_mends_does(program, text, tmp_path):
    (first, *_) = re.findall(r"<pre><code>(.*?)</code>", text, re.DOTALL)
    config = tmp_path / "mended.toml"
    config.write_text(unescape(first))
    (name,) = tomllib.loads(config.read_text())["layers"]
    mended = convert(
        tmp_path / "mended.cvm",
        *("--bits", 3, "--refine", "none", "--config", config),
    )
    before, after = (
        mrt("compare", MODEL, item, "--data", TEST, "--samples", 20)
        for item in (program, mended)
    )
    decibels = [
        float(line.split()[0])
        for result in (before, after)
        for line in result.stdout.splitlines()
        if line.endswith(f" {name}")
    ]
    assert len(decibels) == 2 and decibels[1] > decibels[0] + 0.5


def test_the_page_of_another_model_says_so(program, tmp_path):
    copy = tmp_path / MODEL.name
    copy.write_text(MODEL.read_text() + "\n")
    shutil.copy(DIGITS / "resnet_digits8-0000.params", tmp_path)
    words = ("--data", TEST, "--samples", 5, "-o", tmp_path / "r.html")
    result = mrt("report", copy, program, *words)
    assert result.exit_code == 0, result.output
    found = Page((tmp_path / "r.html").read_text())
    assert "digits.cvm was made from another model." in found.text


def test_a_page_over_an_input_is_refused_before_the_work(program):
    result = mrt("report", MODEL, program, "--data", TEST, "-o", program)
    assert result.exit_code == 2
    assert program.read_bytes()[:4] != b"<!do"


@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_sticks_out_of_a_narrow_window(text, width, tmp_path):
    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    probe = tmp_path / "probe.html"
    quoted = text.replace("&", "&amp;").replace('"', "&quot;")
    probe.write_text(PROBE.format(page=quoted, width=width))
    words = (
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
    )
    seen = subprocess.run(
        [*words, "--virtual-time-budget=3000", probe.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    found = re.search(r'<p id="p">(.*?)</p>', seen, re.DOTALL)
    assert found is not None and found[1] == f"{width} takes 0 more: "
