"""A hook of mkdocs: documents outside docs/ and notebooks become pages of the site, and links to them are mended.

A document keeps the links that hold in the repository. On the site some pages lie elsewhere, so each relative link is
resolved against the file it stands in. One that leads nowhere is a warning, which `mkdocs build --strict` makes an error.
"""

import json
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = ("convert", "verify")
PLACES = {  # where a file of the repository lies on the site, if not where it lies below docs/
    "README.md": "readme.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "cvm/SPEC.md": "reference/specification.md",
    "configs/README.md": "reference/configs.md",
    "examples/README.md": "how_to/verifiers.md",
    "examples/verify.py": "how_to/verify.py",
    "examples/verify.js": "how_to/verify.js",
    "examples/verify.sh": "how_to/verify.sh",
    "examples/last_layer/README.md": "how_to/last_layer.md",
    "examples/libcvm/run.c": "how_to/libcvm/run.c",
    "examples/libcvm/run.rs": "how_to/libcvm/run.rs",
    "cvm/engine/library/cvm.h": "how_to/libcvm/cvm.h",
    **{f"docs/notebooks/{n}.ipynb": f"notebooks/{n}.md" for n in NOTEBOOKS},
}
SOURCES = {place: path for path, place in PLACES.items()}
LINK = re.compile(r"(\]\()([^)\s:#]+)((?:#[^)\s]*)?\))")
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
log = logging.getLogger("mkdocs.hooks.documents")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside docs/, and the notebooks."""
    for path, place in PLACES.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.endswith(".ipynb"):
            text = page_of_notebook(json.loads(text))
        files.append(File.generated(config, place, content=text))
    return files


def page_of_notebook(notebook: dict[str, Any]) -> str:
    """The cells of a notebook, one below another, each with what it gave."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        code = cell["cell_type"] == "code"
        parts.append(f"```python\n{text}\n```" if code else text)
        parts += [given(output) for output in cell.get("outputs", [])]
    return "\n\n".join(parts) + "\n"


def given(output: dict[str, Any]) -> str:
    """What a cell gave: a table, or text."""
    data = output.get("data") or {"text/plain": output.get("text", "")}
    if "text/html" in data:
        return "".join(data["text/html"])
    return "```text\n" + "".join(data["text/plain"]) + "\n```"


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Mend the links of a page, outside code."""
    here = page.file.src_uri
    path = SOURCES.get(here, f"docs/{here}")

    def mended(match: re.Match[str]) -> str:
        target = posixpath.join(posixpath.dirname(path), match[2])
        found = posixpath.normpath(target)
        place = PLACES.get(found, found.removeprefix("docs/"))
        if files.get_file_from_path(place) is None:
            log.warning("%s: no page for the link to %s", path, match[2])
        start = posixpath.dirname(here) or "."
        return match[1] + posixpath.relpath(place, start) + match[3]

    parts = CODE.split(markdown)
    parts[::2] = [LINK.sub(mended, part) for part in parts[::2]]
    return "".join(parts)
