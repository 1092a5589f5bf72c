"""The page as a browser takes it: what it says, what it loads, what a stranger's names can do, and how large it gets."""

import re
import tomllib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from cvm.proof.cost import Work
from mrt.evaluate.class_output import ClassOutput
from mrt.evaluate.evaluation import Accuracy, ClassFacts, Evaluation
from mrt.evaluate.layers import Layer
from mrt.page import Facts, ReportSubject, gather, page
from mrt.page.answers import Answer, Answers
from mrt.page.limits import ANSWERS, DISTRIBUTIONS, NODES, shown
from mrt.page.network import Node
from tests.support.doubling import (
    IMAGE,
    doubling_model,
    doubling_program,
    numbers,
    samples,
)
from tests.support.html_pages import Page

EVIL = 'y</style></title><script>alert("&")</script>\'\u202e\x1b[31m{{ 7 * 7 }}\u00fc'
CALM = numbers(0.5, 1, 1.5, 2, 2.5, 3.2, 3.5, 4, 4.5, 5, 5.5, 12)


def facts_of(name: str = "y") -> Facts:
    model = doubling_model(name)
    subject = ReportSubject(name, "p.cvm", model, model, doubling_program(name))
    return gather(subject, samples(CALM), samples(CALM))


def classified(facts: Facts, count: int) -> Facts:
    """With so many changed answers, of 100 samples."""
    answers = Answers()
    answers.changed = answers.lost = count
    sample = {"x": CALM.astype(np.float32)}
    answers._surest = [
        (0.1, -index, Answer(index, sample, 3, 3, 4, 0.1))
        for index in range(min(count, ANSWERS))
    ]
    report = Evaluation(
        100,
        Accuracy(0.9, 0.99, 1.0),
        Accuracy(0.9 - count / 100, 0.98, 1.0),
        1 - count / 100,
        {"z": 30.0},
        classes=ClassFacts(ClassOutput("z"), labelled=True),
    )
    return replace(facts, report=report, answers=answers)


def grown(facts: Facts, count: int, name: str = "layer {}") -> Facts:
    """With a network of so many layers, each of which reads those before it."""
    layers = []
    for number in range(count):
        layer = Layer(
            number, "rescale", name.format(number), "i8", 0.5, -64.0, 63.5
        )
        layer.add(np.ones(4), np.full(4, 1 + (number % 97 + 1) / 500))
        layers.append(layer)
    nodes = [
        Node(
            layer.source,
            Counter(["conv2d", "rescale"]),
            {
                item
                for item in (place - 1, place - 7, place // 2)
                if 0 <= item < place
            },
            Work(place % 31, 0, 1, 1),
            place % 13,
            layer,
            "conv2d",
        )
        for place, layer in enumerate(layers)
    ]
    local = {layer.number: layer.noise for layer in layers}
    return replace(facts, layers=layers, nodes=nodes, local=local)


def test_each_part_is_there_and_nothing_is_loaded_or_run():
    text = page(facts_of(), ["take care"])
    found = Page(text)
    parts = {"accuracy", "answers", "network", "worst", "work", "distributions"}
    assert parts | {"remarks", "by-loss", "by-cost", "by-bytes", "v3"} <= set(
        found.ids()
    )
    assert "take care" in found.text
    refused = {
        "script",
        "link",
        "iframe",
        "object",
        "base",
        "form",
        "foreignobject",
    }
    assert not refused & {tag for tag, _ in found.tags}
    assert not any(
        name.startswith("on")
        for _, attributes in found.tags
        for name in attributes
    )
    sources = [
        item[name]
        for _, item in found.tags
        for name in ("src", "href")
        if name in item
    ]
    assert all(str(item).startswith(("#", "data:image/")) for item in sources)
    assert not re.search(r"https?:|@import|url\(", text)
    policy = next(item for item in found.named("meta") if "http-equiv" in item)
    assert str(policy["content"]).startswith("default-src 'none'")
    assert {
        "name": "viewport",
        "content": "width=device-width, initial-scale=1",
    } in (found.named("meta"))
    assert len(found.ids()) == len(set(found.ids()))


def test_the_numbers_are_those_that_were_measured():
    """1 to 11 doubled are exact but for 6.4, which is held as 6; 24 is held as 20."""
    facts = facts_of()
    found = Page(page(facts))
    power = sum(
        number**2 for number in (1, 2, 3, 4, 5, 6.4, 7, 8, 9, 10, 11, 24)
    )
    noise = 0.4**2 + 4**2
    decibels = f"{10 * np.log10(power / noise):.1f} dB"
    assert f"%3 clamp · {decibels} · clipped: 8.3 %" in found.text
    local = facts.local[3]  # 3.2 is given as 3, and doubled exactly
    assert local.noise == pytest.approx(16)


def test_links_lead_to_what_is_there():
    found = Page(page(facts_of()))
    links = {str(item["href"])[1:] for item in found.named("a")}
    assert links == {"v3"} <= set(found.ids())


def test_names_of_strangers_are_text():
    facts = classified(facts_of(EVIL), 12)
    subject = replace(facts.subject, program_name=EVIL, class_names=[EVIL] * 9)
    facts = replace(facts, subject=subject, source=EVIL, name_of=lambda _: EVIL)
    text = page(facts, [EVIL])
    found = Page(text)
    assert "script" not in {tag for tag, _ in found.tags}
    assert text.isascii() and "\x1b" not in text
    assert shown(EVIL) in found.text
    assert "\u202e" not in found.text and "{{ 7 * 7 }}" in found.text
    assert found.text.count("<script>") >= 10


def test_the_line_that_mends_is_toml_whatever_the_name():
    facts = grown(facts_of(), 3, 'a.b "]\n[model]\npath = 3 {}')
    found = re.findall(r"<pre><code>(.*?)</code>", page(facts), re.DOTALL)
    assert len(found) == 3
    for text in found:
        content = tomllib.loads(Page(text).text)
        (name,) = content.pop("layers")
        assert content == {} and name.startswith('a.b "]\n[model]\npath')


def test_a_network_of_twenty_thousand_layers_is_a_page_of_less_than_two_megabytes():
    facts = grown(classified(facts_of(), 40), 20_000, "n" * 5000 + "{}")
    text = page(facts, ["r" * 10_000] * 100)
    assert len(text) < 2_000_000
    found = Page(text)
    assert len(found.named("rect")) == NODES
    assert f"{NODES} of 20,000 layers are drawn" in found.text
    assert "19,984 others" in found.text
    assert len(found.named("img")) == 0  # no picture has two channels
    assert "40 of 100; here are the 10" in found.text
    assert len(found.named("figure")) <= DISTRIBUTIONS


def test_a_small_network_is_drawn_whole():
    found = Page(page(grown(facts_of(), 30)))
    assert len(found.named("rect")) == 30 and "are drawn" not in found.text


def test_without_classes_there_are_no_answers():
    facts = facts_of()
    text = Page(page(facts)).text
    assert "The outputs are no classes" in text
    assert "No output holds classes, so there is no accuracy" in text
    assert "It is not plain" not in text
    report = replace(facts.report, classes=ClassFacts(some_output_fits=True))
    facts = replace(facts, report=report)
    text = Page(page(facts)).text
    assert "It is not plain which output holds the classes" in text
    assert "No output holds classes" not in text


def test_intervals_stand_beside_the_shares():
    found = Page(page(classified(facts_of(), 4))).text
    assert "86.0 %" in found and "77.9 to 91.5 %" in found
    assert "lost" in found


def test_long_names_keep_both_ends():
    assert shown("a" * 200 + "z" * 200, 10) == "aaaaa...zzzzz"
    assert IMAGE == (1, 2, 3, 2)
