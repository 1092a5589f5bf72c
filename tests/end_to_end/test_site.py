"""What `make docs` cannot check: links in the repository itself, and pictures that can be read, on a phone or aloud."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PICTURES = sorted((DOCS / "pictures").glob("*.svg"))
WIDEST = 520  # so that a phone of 390 pixels shows letters of 10 and more


def test_every_page_is_in_the_table_of_contents():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": ([\w/]+\.md)$", text, re.M))
    assert {str(path.relative_to(DOCS)) for path in PAGES} <= listed
    assert yaml.safe_load(text)["strict"] is True


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_a_picture_is_small_and_says_what_it_shows(path):
    picture = ElementTree.parse(path).getroot()
    svg = "{http://www.w3.org/2000/svg}"
    title = picture.find(f"{svg}title")
    assert title is not None and len(title.text.split()) > 6
    _, _, width, height = map(int, picture.attrib["viewBox"].split())
    assert width <= WIDEST and height <= WIDEST
    assert path.stat().st_size < 10_000
    assert not picture.findall(f".//{svg}script")
    shown = [page for page in PAGES if f"pictures/{path.name})" in page.read_text()]  # fmt: skip
    assert shown


def test_every_picture_has_words_in_its_place():
    for page in (ROOT / "README.md", *PAGES):
        for words in re.findall(r"!\[([^\]]*)\]\(", page.read_text("utf-8")):
            assert len(words.split()) > 3, page


def test_links_from_document_to_document_hold_in_the_repository():
    """On the site the hooks mend them; here they must hold as they are."""
    names = ("README", "CONTRIBUTING", "SECURITY", "CHANGELOG", "cvm/SPEC")
    others = [ROOT / f"{n}.md" for n in (*names, "configs/README", "examples/README")]  # fmt: skip
    found = 0
    for page in (*PAGES, *others):
        text = re.sub(r"^```.*?^```|`[^`\n]+`", "", page.read_text("utf-8"), flags=re.M | re.S)  # fmt: skip
        for target in re.findall(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)", text):
            assert (page.parent / target).exists(), (page, target)
            found += 1
    assert found > 60


def test_links_to_headings_hold_in_the_repository_and_on_the_site():
    """The two spell the anchor of a heading with code or stops in it differently; a link needs a heading that both spell alike."""
    names = ("README", "CONTRIBUTING", "CHANGELOG", "cvm/SPEC")
    checked = 0
    for page in (*PAGES, *(ROOT / f"{name}.md" for name in names)):
        text = re.sub(
            r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S
        )
        for target, anchor in re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", text):
            aimed = page.parent / target if target else page
            headings = _headings(aimed)
            assert anchor in map(_anchor_in_the_repository, headings), (
                page,
                target,
                anchor,
            )
            assert anchor in map(_anchor_on_the_site, headings), (
                page,
                target,
                anchor,
            )
            checked += 1
    assert checked > 20


def _headings(page):
    text = re.sub(
        r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S
    )
    return re.findall(r"^#+ +(.+?) *$", text, re.M)


def _anchor_in_the_repository(heading):
    """GitHub keeps every space as a hyphen."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _anchor_on_the_site(heading):
    """Python-Markdown trims, and joins hyphens and spaces that follow each other."""
    kept = re.sub(r"[^\w\s-]", "", heading).strip().lower()
    return re.sub(r"[-\s]+", "-", kept)
