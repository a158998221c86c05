"""Figures as SVG in data: URIs, drawn from the dossier alone, the same bytes for the same dossier.

Shape and word carry the verdict, colour only repeats it. Every figure has an alternative text that lists what it shows.
"""

import base64
import io
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from veedor.report.dossier import GroupRow, Hypothesis
from veedor.report.language import Words
from veedor.report.prose import Prose

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, LINE, BAND, ACCENT = "#1c2430", "#5b6675", "#d5dae1", "#eaf0f6", "#1d4f73"
LOOK = {
    "FAIL": ("s", "#9f2a1f", True),
    "INCONCLUSIVE": ("D", "#7a5200", True),
    "PASS": ("o", "#1f6244", True),
    "NOT_TESTED": ("o", "#5b6675", False),
}
WIDTH, ROW, LABEL_LIMIT, TARGET_LIMIT = 7.6, 0.23, 42, 24
MOST_ROWS = 20
JITTER = 7  # lanes over which dots of one line are spread, in a fixed order


@dataclass(frozen=True)
class Drawn:
    """A figure for the page."""

    id: str
    title: str
    caption: str
    alt: str
    uri: str


def draw(prose: Prose) -> list[Drawn]:
    """All figures that the dossier has numbers for."""
    figures = (_forest_groups, _forest_terms, _swarm, _distribution)
    return [drawn for figure in figures if (drawn := figure(prose)) is not None]


def _forest_groups(prose: Prose) -> Drawn | None:
    rows = [row for row in prose.swaps.hypotheses if row.scope == "group" and row.estimate is not None]
    rows.sort(key=lambda row: -(row.estimate or 0.0))
    return _forest(prose, "forest_groups", rows)


def _forest_terms(prose: Prose) -> Drawn | None:
    rows = [row for row in prose.swaps.hypotheses if row.scope == "term" and row.estimate is not None]
    rows.sort(key=lambda row: (row.verdict != "FAIL", -(row.size or 0.0)))
    chosen = sorted(rows[:MOST_ROWS], key=lambda row: -(row.estimate or 0.0))
    return _forest(prose, "forest_terms", chosen)


def _forest(prose: Prose, name: str, rows: Sequence[Hypothesis]) -> Drawn | None:
    if not rows:
        return None
    words, level, margin = prose.words, prose.level(prose.swaps.level), prose.margin

    def fill(axes: "Axes") -> None:
        _margin_band(axes, prose)
        for place, row in enumerate(rows):
            marker, colour, full = LOOK[row.verdict]
            if row.low is not None and row.high is not None:
                axes.plot([row.low, row.high], [place, place], color=colour, linewidth=1.4, solid_capstyle="butt")
            face = colour if full else "white"
            axes.plot([row.estimate or 0.0], [place], marker=marker, color=colour, markerfacecolor=face, markersize=5.5)
            told = f"{prose.effect(row.estimate)}   {words.code('verdict', row.verdict)}"
            _beside(axes, place, told, colour)
        _lines(axes, [prose.name(row) for row in rows])
        _effect_axis(axes, prose)

    items = [_told(prose, row) for row in rows]
    uri = _svg(fill, len(rows), name)
    return Drawn(
        id=name,
        title=words.text(name),
        caption=words.text(f"{name}_caption", level=level, margin=margin),
        alt=words.text(f"{name}_alt", items="; ".join(items)),
        uri=uri,
    )


def _told(prose: Prose, row: Hypothesis) -> str:
    verdict = prose.words.code("verdict", row.verdict)
    if row.low is None or row.high is None:
        return prose.words.text("forest_item_bare", name=prose.name(row), verdict=verdict)
    numbers = {key: prose.effect(getattr(row, key)) for key in ("estimate", "low", "high")}
    return prose.words.text("forest_item", name=prose.name(row), verdict=verdict, **numbers)


def _swarm(prose: Prose) -> Drawn | None:
    groups = [row for row in prose.swaps.hypotheses if row.scope == "group" and row.words]
    if not groups:
        return None
    groups.sort(key=lambda row: -(row.estimate or 0.0))
    widest = max(groups, key=lambda row: sum(word.kind == "control" for word in row.words))
    controls = sorted(word.effect for word in widest.words if word.kind == "control")
    lines = [(prose.words.text("controls_row"), controls, SOFT)] if controls else []
    for row in groups:
        effects = sorted(word.effect for word in row.words if word.kind == "term")
        if effects:
            lines.append((prose.group(row.axis, row.group), effects, LOOK[row.verdict][1]))

    def fill(axes: "Axes") -> None:
        _margin_band(axes, prose)
        for place, (_, effects, colour) in enumerate(lines):
            lanes = [place + 0.3 * ((index * 3) % JITTER / (JITTER - 1) - 0.5) * 2 for index in range(len(effects))]
            axes.plot(effects, lanes, "o", color=colour, markersize=3.6, alpha=0.75, markeredgewidth=0)
        _lines(axes, [label for label, _, _ in lines])
        _effect_axis(axes, prose)

    items = [_extent(prose, label, effects) for label, effects, _ in lines]
    return Drawn(
        id="swarm",
        title=prose.words.text("swarm"),
        caption=prose.words.text("swarm_caption", margin=prose.margin),
        alt=prose.words.text("swarm_alt", items="; ".join(items)),
        uri=_svg(fill, len(lines), "swarm"),
    )


def _extent(prose: Prose, label: str, effects: Sequence[float]) -> str:
    return prose.words.text("swarm_item", name=label, low=prose.effect(effects[0]), high=prose.effect(effects[-1]))


def _distribution(prose: Prose) -> Drawn | None:
    words, threshold = prose.words, prose.dossier.subject.threshold
    rows = [row for row in prose.dossier.metrics.group if row.probability is not None]
    rows.sort(key=lambda row: (row.axis != "controls", -(row.probability.q50 if row.probability else 0.0)))
    if not rows:
        return None

    def fill(axes: "Axes") -> None:
        axes.axvline(threshold, color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)))
        for place, row in enumerate(rows):
            spread = row.probability
            if spread is None:
                continue
            colour = SOFT if row.axis == "controls" else ACCENT
            axes.plot([spread.q05, spread.q95], [place, place], color=colour, linewidth=1.0)
            axes.plot([spread.q25, spread.q75], [place, place], color=colour, linewidth=4.5, solid_capstyle="butt")
            axes.plot([spread.q50], [place], "o", color="white", markeredgecolor=INK, markersize=4.2)
            _beside(axes, place, words.number(spread.q50, 2), INK)
        _lines(axes, [_group_name(prose, row) for row in rows])
        axes.set_xlim(-0.02, 1.02)
        _plain(
            axes.set_xlabel(
                words.text("probability_axis", target=_short(prose.target, TARGET_LIMIT)), fontsize=8, color=SOFT
            )
        )
        _ticks(axes, words, 1)

    items = [
        words.text("distribution_item", name=_group_name(prose, row), median=words.number(row.probability.q50, 2))
        for row in rows
        if row.probability is not None
    ]
    caption = words.text("distribution_caption", target=prose.target, threshold=words.number(threshold, 2))
    return Drawn(
        id="distribution",
        title=words.text("distribution"),
        caption=caption,
        alt=words.text("distribution_alt", items="; ".join(items)),
        uri=_svg(fill, len(rows), "distribution"),
    )


def _group_name(prose: Prose, row: GroupRow) -> str:
    return prose.group(row.axis, row.group)


# Parts of axes


def _margin_band(axes: "Axes", prose: Prose) -> None:
    margin, adverse = prose.swaps.margin, prose.swaps.adverse
    low = -margin if adverse != "higher" else None
    high = margin if adverse != "lower" else None
    axes.axvline(0, color=SOFT, linewidth=0.8)
    axes.axvspan(-margin, margin, color=BAND, linewidth=0, zorder=0)
    for edge in (low, high):
        if edge is not None:
            axes.axvline(edge, color=ACCENT, linewidth=0.8, linestyle=(0, (4, 3)))


def _lines(axes: "Axes", labels: Sequence[str]) -> None:
    """One line for each label, the first on top."""
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_yticks(range(len(labels)))
    for label in axes.set_yticklabels([_short(label) for label in labels], fontsize=8.5, color=INK):
        _plain(label)
    axes.tick_params(axis="y", length=0, pad=6)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=LINE, linewidth=0.5)


def _beside(axes: "Axes", place: int, told: str, colour: str) -> None:
    _plain(axes.text(1.02, place, told, transform=axes.get_yaxis_transform(), va="center", fontsize=7.8, color=colour))


def _effect_axis(axes: "Axes", prose: Prose) -> None:
    name = "effect_axis" if prose.swaps.scale == "logit" else "effect_axis_probability"
    label = prose.words.text(name, target=_short(prose.target, TARGET_LIMIT), units=prose.units)
    _plain(axes.set_xlabel(label, fontsize=8, color=SOFT))
    _ticks(axes, prose.words, 1 if prose.swaps.scale == "logit" else 2)


def _ticks(axes: "Axes", words: Words, digits: int) -> None:
    axes.xaxis.set_major_formatter(lambda value, _: words.number(round(float(value), 6), digits))
    axes.tick_params(axis="x", labelsize=8, colors=SOFT, length=3)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(LINE)


def _short(label: str, limit: int = LABEL_LIMIT) -> str:
    return label if len(label) <= limit else label[: limit - 1] + "…"


def _plain(text: Any) -> None:
    """No mathematics: a dollar sign in a label is a dollar sign."""
    text.set_parse_math(False)


# Drawing


def _svg(fill: "Callable[[Axes], None]", rows: int, name: str) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {"svg.hashsalt": f"veedor-{name}", "svg.fonttype": "path", "font.family": ["DejaVu Sans"]}
    with mpl.rc_context(style), _no_glyph_warnings():
        figure = Figure(figsize=(WIDTH, ROW * rows + 0.75), layout="constrained")
        fill(figure.add_subplot())
        mpl.rcParams["svg.fonttype"] = "path" if _outlined(figure) else "none"
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _outlined(figure: "Figure") -> bool:
    """Whether every label can be drawn as outlines: DejaVu has its letters, and none runs from right to left."""
    from matplotlib.font_manager import FontProperties, findfont, get_font
    from matplotlib.text import Text

    known = get_font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap()
    texts: Iterator[Text] = iter(figure.findobj(Text))
    characters = {character for text in texts for character in text.get_text() if character != "\n"}
    return all(ord(one) in known and unicodedata.bidirectional(one) not in ("R", "AL") for one in characters)


@contextmanager
def _no_glyph_warnings() -> Iterator[None]:
    """Letters that the font lacks are left to the reader's fonts (see `_outlined`), so there is nothing to warn of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s)Glyph .* missing from font")
        yield
