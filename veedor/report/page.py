"""From a dossier to one self-contained HTML page in one language. The same template serves screen and print.

Everything a page shows is escaped; it loads nothing, and needs no script. What is only for print (caps on long tables)
is a value that the template is given.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veedor.report.crosswalk import by_instrument, read_crosswalk, supported
from veedor.report.dossier import Dossier, GroupRow, Hypothesis
from veedor.report.figures import Drawn
from veedor.report.language import Words, visible
from veedor.report.paragraphs import Paragraphs
from veedor.report.view import View

if TYPE_CHECKING:
    from jinja2 import Environment

SHAPES = {"FAIL": "■", "INCONCLUSIVE": "◆", "NOT_TESTED": "○", "PASS": "●"}
SCREEN = {"groups": 1000, "words": 5000, "failing": 60, "pairs": 5, "word_pairs": 3}
PRINT = {"groups": 16, "words": 90, "failing": 12, "pairs": 3, "word_pairs": 2}


def project_root() -> Path:
    """The folder that holds `reports/`: the checkout, or the wheel's copy of it."""
    import veedor

    package = Path(veedor.__file__).resolve().parent
    places = (package.parent, package / "_project")
    found = next((place for place in places if (place / "reports" / "templates").is_dir()), None)
    if found is None:
        raise FileNotFoundError(f"no reports/templates beside or inside {package}; install veedor again")
    return found


@lru_cache(maxsize=2)
def environment(folder: Path) -> "Environment":
    """Jinja with everything escaped and nothing undefined let through."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["visible"] = visible
    return made


def render_template(name: str, values: Mapping[str, object]) -> str:
    """A template of reports/templates with values put in, escaped."""
    return environment(project_root() / "reports" / "templates").get_template(name).render(**values)


def render_page(
    dossier: Dossier,
    words: Words,
    provenance: Mapping[str, Any],
    records: Mapping[str, str],
    *,
    figures: Sequence[Drawn],
    printed: bool = False,
) -> str:
    """The report as HTML; `records` are the digests of the records it was made from."""
    prose = Paragraphs(dossier, words)
    view = View(prose)
    caps = PRINT if printed else SCREEN
    failing = view.rows("term", "FAIL")
    groups = view.rows("group", "FAIL") + view.rows("group", "INCONCLUSIVE")
    others = view.rows("group", "PASS") + view.rows("group", "NOT_TESTED")
    everything = sorted(view.rows("term"), key=lambda row: (row.verdict != "FAIL", -(row.size or 0.0)))
    reports = project_root() / "reports"
    clauses = supported(read_crosswalk(reports / "crosswalk.csv", words.language), dossier.model_dump(mode="json"))
    return render_template(
        "report.html.j2",
        {
            "d": dossier,
            "w": words,
            "prose": prose,
            "view": view,
            "t": words["ui"],
            "shapes": SHAPES,
            "printed": printed,
            "caps": caps,
            "swaps": prose.swaps,
            "sheet": dossier.datasets[0],
            "cards": view.cards(groups[: caps["groups"]], prefix="G", pairs=caps["pairs"]),
            "others": view.cards(groups[caps["groups"] :] + others, prefix="P", pairs=0),
            "failing": view.cards(failing[: caps["failing"]], prefix="W", pairs=caps["word_pairs"]),
            "n_failing": len(failing),
            "words_table": everything[: caps["words"]],
            "n_words": len(everything),
            "group_table": group_table(dossier),
            "figures": figures,
            "instruments": by_instrument(clauses),
            "as_of": max((clause.as_of for clause in clauses), default=""),
            "provenance": provenance,
            "records": records,
        },
    )


def group_table(dossier: Dossier) -> list[tuple[GroupRow, Hypothesis | None]]:
    """Every group with its hypothesis, by axis; control words and texts without a term come last."""
    hypotheses = {
        (row.axis, row.group): row for row in dossier.metrics.counterfactual.hypotheses if row.scope == "group"
    }
    last = ("controls", "unknown")
    rows = sorted(dossier.metrics.group, key=lambda row: (row.axis in last, row.axis, row.group))
    return [(row, hypotheses.get((row.axis, row.group))) for row in rows]
