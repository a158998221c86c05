"""The page is complete, self-contained, accessible, and shows hostile texts without obeying them."""

import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from jinja2 import UndefinedError

from tests.report.conftest import LANGUAGES, dossier_of, page_of, words_of
from tests.report.sample import HOSTILE, PROVENANCE
from veedor.report import Dossier, project_root
from veedor.report.page import environment, render_template
from veedor.report.paragraphs import Paragraphs
from veedor.report.view import DEEPEST, View, shade

ORDER = [
    "scope", "emphasis", "findings", "table", "figures", "method", "datasheet", "limits", "crosswalk", "provenance",
    "annex", "glossary",
]  # fmt: skip
VOID = {"meta", "img", "br", "link", "input", "hr", "col", "base"}


class Parsed(HTMLParser):
    """Tags with their attributes, the text, and whether every tag was closed."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.faults += [f"<{tag}> was never closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> out of place")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def parsed(pages: dict[str, str]) -> dict[str, Parsed]:
    return {language: Parsed(page) for language, page in pages.items()}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_tag_is_closed_where_it_should_be(parsed: dict[str, Parsed], language: str):
    assert parsed[language].faults == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_names_its_language_and_title(parsed: dict[str, Parsed], pages: dict[str, str], language: str):
    assert parsed[language].all("html") == [{"lang": language}]
    assert "<title>" in pages[language]
    assert "abuse-detector/3" in re.findall(r"<title>(.*?)</title>", pages[language])[0]


def test_the_sections_stand_in_their_order_and_the_verdict_comes_first(pages: dict[str, str]):
    page = pages["en"]
    places = [page.index(f'<h2 id="{name}">') for name in ORDER]
    assert places == sorted(places)
    assert page.index('class="decision fail"') < places[0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_loaded_from_anywhere_and_nothing_runs(
    parsed: dict[str, Parsed], pages: dict[str, str], language: str
):
    page = parsed[language]
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "iframe", "object", "embed", "link", "base", "form"})
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "srcset", "action", "poster"):
            value = attributes.get(name)
            assert value is None or value.startswith(("data:image/svg+xml;base64,", "#")), value
    style = re.findall(r"<style>(.*?)</style>", pages[language], re.DOTALL)
    assert len(style) == 1
    assert not re.search(r"@import|url\(|expression\(", style[0])
    assert "Noto Color Emoji" not in style[0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_link_leads_somewhere_and_every_anchor_is_one(parsed: dict[str, Parsed], language: str):
    ids = [attributes["id"] for _, attributes in parsed[language].tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for attributes in parsed[language].all("a"):
        assert str(attributes["href"])[1:] in ids


@pytest.mark.parametrize("language", LANGUAGES)
def test_tables_have_scopes_and_images_alternative_texts(parsed: dict[str, Parsed], language: str):
    assert all(attributes.get("scope") in ("col", "row") for attributes in parsed[language].all("th"))
    images = parsed[language].all("img")
    assert len(images) == 4
    assert all(len(str(attributes["alt"])) > 40 for attributes in images)


def test_headings_never_skip_a_level(pages: dict[str, str]):
    levels = [int(level) for level in re.findall(r"<h([1-6])", pages["en"])]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_verdict_is_told_by_shape_and_word(pages: dict[str, str], language: str):
    told = re.findall(
        r'<span class="verdict (\w+)"><span aria-hidden="true">(.)</span> ([^<]+)</span>', pages[language]
    )
    words = words_of(language)
    shapes = {"fail": "■", "pass": "●", "inconclusive": "◆", "not_tested": "○"}
    assert told
    for name, shape, word in told:
        assert shape == shapes[name]
        assert word == words.code("verdict", name.upper())


def test_every_failing_group_and_word_has_a_card_with_examples_and_evidence(dossier: Dossier, pages: dict[str, str]):
    page = pages["en"]
    for place, row in enumerate(dossier.metrics.counterfactual.hypotheses):
        if row.verdict == "FAIL":
            card = page[page.index(f'<article class="finding" id="h-{place}">') :]
            card = card[: card.index("</article>")]
            assert "<mark>" in card
            assert f"audit.json#/metrics/counterfactual/hypotheses/{place}" in card


def test_every_group_of_the_set_is_in_the_groups_table_also_those_too_small_to_judge(
    dossier: Dossier, pages: dict[str, str]
):
    table = pages["en"].split('<h2 id="table">')[1].split("</table>")[0]
    prose = Paragraphs(dossier, words_of("en"))
    for row in dossier.metrics.group:
        assert prose.group(row.axis, row.group) in table
    assert table.count("n &lt; 6 terms: not judged as a group") == 3


def test_numbers_of_the_groups_table_are_those_of_the_audit(dossier: Dossier, pages: dict[str, str]):
    table = pages["en"].split('<h2 id="table">')[1].split("</table>")[0]
    lines = dict(re.findall(r'<tr><th scope="row">(.*?)<br>(.*?)</tr>', table, re.DOTALL))
    rows = {row.id: row for row in dossier.metrics.counterfactual.hypotheses}
    cells = re.findall(r'<td class="num">([^<]*)', lines["Muslim people"])
    group = next(row for row in dossier.metrics.group if row.group == "muslim")
    row = rows["group/religion/muslim"]
    assert cells[0] == "6"
    assert cells[1] == str(group.n) == "84"
    assert cells[2] == f"{100 * (group.rate or 0):.1f} %"
    assert cells[3] == f"+{row.estimate:.2f}"


def test_the_print_caps_long_tables_and_says_where_the_rest_is():
    many = dossier_of()
    rows = many.metrics.counterfactual.hypotheses
    extra = tuple(
        row.model_copy(update={"id": f"{row.id}-{copy}"}) for row in rows if row.scope == "term" for copy in range(3)
    )
    swaps = many.metrics.counterfactual.model_copy(update={"hypotheses": (*rows, *extra)})
    long = many.model_copy(update={"metrics": many.metrics.model_copy(update={"counterfactual": swaps})})
    printed = page_of(long, "en", printed=True)
    assert "90 of 324 words are printed here" in printed
    assert "90 of 324 words" not in page_of(long, "en")


def test_the_print_tells_further_failing_groups_in_a_table():
    many = dossier_of()
    rows = many.metrics.counterfactual.hypotheses
    failing = next(row for row in rows if row.id == "group/religion/muslim")
    extra = tuple(failing.model_copy(update={"id": f"{failing.id}-{copy}"}) for copy in range(20))
    swaps = many.metrics.counterfactual.model_copy(update={"hypotheses": (*extra, *rows)})
    long = many.model_copy(update={"metrics": many.metrics.model_copy(update={"counterfactual": swaps})})
    printed, shown = (page_of(long, "en", printed=is_print) for is_print in (True, False))
    assert printed.count('<span class="number">G') == 16
    assert shown.count('<span class="number">G') == 25


def test_an_audit_without_any_hypothesis_has_a_page_that_says_so():
    bare = dossier_of()
    swaps = bare.metrics.counterfactual.model_copy(update={"hypotheses": ()})
    metrics = bare.metrics.model_copy(update={"counterfactual": swaps, "attribution": (), "group": ()})
    made = bare.decision.model_copy(
        update={"overall": "NOT_TESTED", "rule": "overall_no_hypotheses", "failing": (), "next_action": "repair_audit"}
    )
    page = Parsed(page_of(bare.model_copy(update={"metrics": metrics, "decision": made}), "es"))
    assert page.faults == []
    assert "SIN PROBAR" in "".join(page.texts)


def test_effects_of_probability_are_told_without_odds():
    told = dossier_of()
    rows = tuple(row.model_copy(update={"practical": None}) for row in told.metrics.counterfactual.hypotheses)
    swaps = told.metrics.counterfactual.model_copy(
        update={
            "scale": "probability",
            "units": "probability",
            "margin": 0.05,
            "margin_factor": None,
            "hypotheses": rows,
        }
    )
    metrics = told.metrics.model_copy(update={"counterfactual": swaps})
    text = "".join(Parsed(page_of(told.model_copy(update={"metrics": metrics}), "en")).texts)
    assert "raises the probability of “abusive” by 1.410 on average" in text
    assert "The odds are" not in text


def test_sign_off_fields_are_empty(pages: dict[str, str]):
    part = pages["en"].split('class="signoff"')[1].split("</table>")[0]
    assert part.count('<span class="blank"></span>') == 5


def test_a_model_given_as_a_folder_is_titled_by_its_last_name():
    told = dossier_of()
    card = told.subject.card.model_copy(update={"name": "/srv/models/abuse-tiny", "uri": None, "version": None})
    moved = told.model_copy(update={"subject": told.subject.model_copy(update={"card": card})})
    assert Paragraphs(moved, words_of("en")).model == "abuse-tiny"


# Hostile texts


def test_hostile_texts_are_shown_and_never_obeyed(hostile_page: str):
    page = Parsed(hostile_page)
    assert page.faults == []
    assert page.all("script") == []
    assert "<script>alert" not in hostile_page
    assert "&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;" in hostile_page
    text = "".join(page.texts)
    assert '<script>alert("x")</script> javascript:alert(1)' in text
    assert "{{ 7*7 }}" in text
    assert "שלום 医 😀 $x$" in text


def test_no_attribute_of_a_hostile_page_holds_a_link_that_acts(hostile_page: str):
    for _, attributes in Parsed(hostile_page).tags:
        for name in ("src", "href", "style"):
            assert "javascript:" not in str(attributes.get(name, ""))


def test_control_and_direction_characters_do_not_reach_the_page(hostile_page: str):
    assert "\u202e" in HOSTILE
    assert not set(hostile_page) & set("\u202e\u202c\u2066\x00\x07")


def test_right_to_left_texts_stand_in_a_right_to_left_box(dossier: Dossier):
    from veedor.report.view import direction

    assert direction("אדם גבוה") == "rtl"
    view = View(Paragraphs(dossier, words_of("en")))
    pair = next(row.examples[0] for row in dossier.metrics.counterfactual.hypotheses if row.examples)
    first, _ = view.pair(pair.model_copy(update={"text": "אדם", "span": (-1, -1)}))
    assert (first.direction, first.word) == ("rtl", "")


def test_the_templates_escape_and_leave_nothing_undefined():
    made = environment(project_root() / "reports" / "templates")
    assert made.autoescape is True
    assert made.from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"
    with pytest.raises(UndefinedError):
        made.from_string("{{ missing }}").render()


def test_a_template_can_be_rendered_by_name():
    with pytest.raises(UndefinedError):
        render_template("report.html.j2", {})


# Colours


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def style_colours() -> dict[str, str]:
    style = (project_root() / "reports" / "templates" / "report.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", style))


@pytest.mark.parametrize("name", ["ink", "soft", "accent", "fail", "inconclusive", "pass", "untested"])
def test_text_stands_out_from_paper_and_tint(name: str):
    """WCAG AA asks for 4.5 to 1; the same colours stand behind white words in the decision box."""
    colours = style_colours()
    assert contrast(colours[name], "#ffffff") >= 4.5
    assert contrast(colours[name], colours["tint"]) >= 4.5


@pytest.mark.parametrize("strength", [-1.0, -0.5, 0.5, 1.0])
@pytest.mark.parametrize("signed", [True, False])
def test_words_can_be_read_on_the_deepest_heat(strength: float, signed: bool):
    assert DEEPEST < 1
    assert contrast(style_colours()["ink"], shade(strength, signed=signed)) >= 4.5


def test_black_on_white_is_twenty_one_to_one():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)


def test_the_page_tells_where_and_with_what_it_was_made(pages: dict[str, str]):
    packages: Any = PROVENANCE["packages"]
    assert "2026-11-30" in pages["en"]
    assert f"torch {packages['torch']}" in pages["en"]
    assert "d" * 64 in pages["en"]
