"""Puts the facts into the templates: one file that loads nothing, runs nothing, and escapes every name.

The drawings are SVG written by the templates, since they are no more than rectangles and
paths that follow the style sheet into the dark; a plotting library would bring scripts of
megabytes, or pictures of fixed colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jinja2

from mrt.evaluate.verdict import DOUBTFUL, GOOD, USELESS
from mrt.page import sections
from mrt.page.drawing import draw
from mrt.page.facts import Facts
from mrt.page.limits import (
    LONGEST_REMARK,
    MENDED,
    REMARKS,
    shown,
)
from mrt.page.mending import worst
from mrt.page.network import totals

TEMPLATES = Path(__file__).parent / "templates"
CLASS_OF = {GOOD: "good", DOUBTFUL: "doubtful", USELESS: "bad"}


def page(facts: Facts, remarks: Sequence[str] = ()) -> str:
    """Return the whole file, in ASCII; `remarks` are shown below the verdict."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    sentence = facts.verdict
    text = environment.get_template("page.html").render(
        facts=facts,
        verdict=sentence,
        verdict_class=CLASS_OF[sentence.word],
        remarks=[shown(entry, LONGEST_REMARK) for entry in remarks[:REMARKS]],
        axis=sections.accuracy(facts.report),
        figures=sections.figures(facts.report),
        drawing=draw(facts.nodes),
        work=sections.work(facts.nodes),
        sums=totals(facts.nodes),
        mendings=worst(
            facts.nodes,
            facts.local,
            facts.subject.program.program,
            facts.weights,
            most=MENDED,
        ),
        changed=sections.changed(facts),
        plots=[sections.plot(entry) for entry in facts.distributions],
    )
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")
