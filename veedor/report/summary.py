"""summary.md: the verdict on one screen, for a run page or a pull request."""

import re

from veedor.report.dossier import Dossier, Hypothesis
from veedor.report.language import Words
from veedor.report.paragraphs import Paragraphs

MOST = 12
SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~-])")


def summarise(dossier: Dossier, words: Words) -> str:
    """The decision, the failing hypotheses and what to do next, as Markdown."""
    prose, made, card = Paragraphs(dossier, words), dossier.decision, dossier.subject.card
    ui = words["ui"]
    facts = {
        "model": f"{plain(prose.model)} (`{card.weights_digest[:16]}`)",
        "target": plain(prose.target),
        "policy_digest": f"`{dossier.policy.digest[:16]}`",
        "evaluation_set": plain(dossier.datasets[0].name),
    }
    failing = [row for row in prose.swaps.hypotheses if row.verdict == "FAIL" and row.gating]
    lines = [
        f"# {plain(words.code('verdict', made.overall))}: {plain(prose.model)}",
        "",
        plain(prose.overall()),
        "",
        f"**{ui['next']}:** {plain(words.code('next_action', made.next_action))}",
        "",
        *(f"- {ui[label]}: {value}" for label, value in facts.items()),
        "",
        *_table(failing, prose),
        *_marked(prose),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _marked(prose: Paragraphs) -> list[str]:
    """The methods that are marked unreliable on this model, and why."""
    marked = [sheet for sheet in prose.validity.methods if sheet.unreliable]
    ui = prose.words["ui"]
    told = [f"- {plain(prose.plain_method(one.name))}: {plain(prose.marks(one.marks))}" for one in marked]
    return ["", f"**{plain(ui['trust'])}: {plain(ui['trust_marked'])}**", "", *told] if told else []


def _table(rows: list[Hypothesis], prose: Paragraphs) -> list[str]:
    if not rows:
        return []
    ui, words = prose.words["ui"], prose.words
    interval = prose.words.text("interval", level=prose.level(prose.swaps.level))
    heads = [ui["verdict"], ui["evidence"], ui["effect"], interval, ui["adjusted"]]
    lines = ["| " + " | ".join(heads) + " |", "|---|---|---:|---:|---:|"]
    for row in rows[:MOST]:
        verdict = words.code("verdict", row.verdict)
        numbers = [prose.effect(row.estimate), prose.range(row.low, row.high), words.p_value(row.adjusted_p)]
        lines.append("| " + " | ".join([verdict, plain(prose.title(row)), *numbers]) + " |")
    return [*lines, *([f"| … +{len(rows) - MOST} | | | | |"] if len(rows) > MOST else [])]


def plain(text: str) -> str:
    """Text that Markdown shows as it is.

    >>> plain("a_b <i>")
    'a\\\\_b \\\\<i\\\\>'
    """
    return SPECIAL.sub(r"\\\1", text.replace("\n", " "))
