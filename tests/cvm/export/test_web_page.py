"""The page of an export to the web, driven in Chromium and in Firefox: drawing, dropping, receipts, and nothing that sticks out."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

from cvm.export.web.folder import write
from cvm.export.web.page import joinable
from cvm.file import format as file_format
from cvm.program import (
    Input,
    Instruction,
    Meaning,
    Metadata,
    Output,
    Program,
    TensorType,
)
from cvm.proof.validate import validate
from tests.cvm.export.test_c_source import convolution
from tests.support import chromium, firefox
from tests.support.command import cvm
from tests.support.html_pages import Page
from tests.support.web_programs import needs_web, node

pytestmark = needs_web()


def rows_of_a_picture() -> Program:
    """Return the greatest integer of each row of a picture, by real numbers of 0 to 1."""
    picture = TensorType("i8", (1, 1, 8, 8))
    steps = (
        Instruction("reduce_max", (0,), {"axis": 3}),
        Instruction("reshape", (1,), {"shape": (1, 8)}),
    )
    names = ("</script><b>'one'", *"abcdefg")
    metadata = Metadata(
        inputs={"data": Meaning(1 / 255, -128, "x")},
        outputs={"</script>rows": Meaning(1 / 255, -128, "y")},
        labels=names,
    )
    return Program(
        (Input("data", picture, -128, 127),),
        (),
        steps,
        (Output("</script>rows", 2),),
        metadata,
    )


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    folder = tmp_path_factory.mktemp("web")
    program = rows_of_a_picture()
    file_format.write(program, folder / "rows.cvm")
    for name, text in write(validate(program), "rows").files.items():
        (folder / name).write_text(text, encoding="ascii")
    return folder


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            chromium.browser, marks=chromium.needs_chromium, id="chromium"
        ),
        pytest.param(
            firefox.browser, marks=firefox.needs_firefox, id="firefox"
        ),
    ],
)
def tab(request, tmp_path_factory):
    with request.param(tmp_path_factory.mktemp("profile")) as found:
        yield found


SHOWN = """
  const texts = (query) => [...document.querySelectorAll(query)].map((item) => item.textContent);
  return {
    test: document.getElementById("test").textContent,
    input: [...cvm.samples[0].inputs.data.values],
    bars: texts("#answer .bars b"),
    digests: texts("#digests code"),
    receipt: JSON.stringify(cvm.receipt),
  };
"""


def test_what_is_drawn_is_answered_with_the_receipt_of_cvm(web, tab, tmp_path):
    tab.open(web / "index.html")
    x, y, size = tab.run(
        "const box = document.getElementById('board').getBoundingClientRect(); return [box.left, box.top, box.width];"
    )
    height = y + 0.31 * size
    tab.drag((x + 0.05 * size, height), (x + 0.95 * size, height))
    found = tab.run(SHOWN)
    assert found["test"] == "match"
    drawn = np.array(found["input"], np.int8).reshape(1, 1, 8, 8)
    rows = drawn[0, 0].max(axis=1)
    # the stroke, 35.5 of 40 pixels high, covers 8/9 of the third row: 0.889 * 255 - 128 is 99
    assert 95 <= rows[2] <= 103  # its edges are smoothed
    assert set(np.delete(rows, 2).tolist()) == {-128}
    assert found["bars"][0] == "b"  # the label of the third row
    np.save(tmp_path / "x.npy", drawn)
    receipt = tmp_path / "r.json"
    words = ("--input", tmp_path / "x.npy", "--receipt", receipt)
    assert cvm("run", web / "rows.cvm", *words).exit_code == 0
    stated = json.loads(receipt.read_text())
    assert json.loads(found["receipt"]) == stated
    sample = stated["samples"][0]
    assert found["digests"] == [
        stated["root"],
        sample["inputs"]["data"],
        sample["outputs"]["</script>rows"],
    ]


DROP = """
  const bytes = Uint8Array.from(atob(%s), (c) => c.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], %s, { type: %s }));
  const before = document.body.dataset.read;
  document.getElementById("drop").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
  for (let i = 0; i < 500 && document.body.dataset.read === before; i++) await new Promise((done) => setTimeout(done, 10));
  return [document.getElementById("note").textContent, document.getElementById("verdict").textContent];
"""


def drop(tab, name: str, content: bytes, kind: str = "") -> list[str]:
    """Drop a file on the page; return its note and its verdict."""
    texts = [base64.b64encode(content).decode(), name, kind]
    found: list[str] = tab.run(DROP % tuple(map(json.dumps, texts)))
    return found


def test_a_receipt_made_elsewhere_matches_what_was_dropped(web, tab, tmp_path):
    values = np.random.default_rng(3).random((3, 1, 8, 8)) * 0.9
    values[0, 0, 0, 0] = 7.0  # clipped
    values[2, 0, 6, 1] = 1.0
    np.save(tmp_path / "x.npy", values)
    receipt = tmp_path / "r.json"
    words = ("--input", tmp_path / "x.npy", "--real", "--receipt", receipt)
    assert cvm("run", web / "rows.cvm", *words).exit_code == 0
    stated = receipt.read_bytes()
    tab.open(web / "index.html")
    assert drop(tab, "r.json", stated)[1] == "Give an input first."
    note, verdict = drop(tab, "x.npy", (tmp_path / "x.npy").read_bytes())
    assert note == "x.npy: real numbers, 1 outside the range and clipped"
    assert verdict.startswith("Match")
    other = stated.replace(b'"cost": ', b'"cost": 1')
    assert drop(tab, "r.json", other)[1].startswith("No match: sample 0, cost")
    third = """
      const sample = document.getElementById("sample");
      sample.value = 2;
      sample.dispatchEvent(new Event("input"));
      return document.querySelector("#answer .bars b").textContent;
    """
    assert tab.run(third) == "f"


def test_a_file_that_does_not_suit_is_refused_in_words(web, tab):
    tab.open(web / "index.html")
    expected = "expected [1,1,8,8] or, for N samples, [N,1,8,8]"
    note, _ = drop(tab, "x.json", b'{"data": [[[[1, 2]]]]}')
    assert note == f"x.json: input 'data': shape [1,1,1,2]; {expected}"
    note, _ = drop(tab, "x.npy", b"PK")
    assert note == "x.npy: no .npy file"
    assert tab.run("return cvm.receipt") is None


def test_a_picture_is_drawn_at_the_size_of_the_input(web, tab):
    pixels = np.zeros((16, 16), np.uint8)
    pixels[8:] = 255
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    tab.open(web / "index.html")
    note, _ = drop(tab, "half.png", file.getvalue(), "image/png")
    assert note.startswith("half.png: 16x16, drawn at 8x8")
    rows = tab.run('return [...cvm.answers[0]["</script>rows"].values]')
    assert rows[:3] == [-128] * 3 and rows[5:] == [127] * 3


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_sticks_out_of_a_window(web, tab, width):
    tab.open(web / "index.html", width)
    assert tab.run("return innerWidth") == width
    tab.run("document.getElementById('fixed').click()")
    root = tab.run("return cvm.receipt.root")
    stated = tab.run("return JSON.stringify(cvm.receipt)")
    _, verdict = drop(
        tab, "r.json", stated.replace(root, "0" * 64).encode("ascii")
    )
    assert verdict.startswith("No match: the root")
    more = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert tab.run(more) == 0


def test_an_input_that_is_no_picture_is_only_dropped(tab, tmp_path):
    files = write(validate(convolution()), "n").files
    (tmp_path / "index.html").write_text(files["index.html"])
    tab.open(tmp_path / "index.html")
    assert tab.run("return document.getElementById('drawing').hidden") is True
    tab.run("document.getElementById('fixed').click()")
    titles = "return [...document.querySelectorAll('#answer h3')].map((item) => item.textContent)"
    found = tab.run(titles)
    assert [title.split()[0] for title in found] == ["y", "again", "first"]


def test_the_page_is_one_file_that_reads_nothing_else(web):
    text = (web / "index.html").read_text()
    page = Page(text)
    for name, attributes in page.tags:
        assert not {"src", "href", "action"} & attributes.keys(), name
    policies = [tag.get("content") for tag in page.named("meta")]
    assert any(text and "default-src 'none'" in text for text in policies)
    assert text.count("</script") == 1


def test_the_modules_meet_in_one_script_without_a_clash(web):
    script = (web / "index.html").read_text().partition('"module">')[2]
    (web / "joined.mjs").write_text(script.partition("</script>")[0])
    node(web, "--check", "joined.mjs")


def test_a_module_loses_its_imports_and_exports_alone():
    text = 'import { a } from "./a.js";\nexport const b = a;\n// export it\n'
    assert joinable(text) == "const b = a;\n// export it\n"
