"""One figure of a benchmark: which methods beat chance and by how much, what is left of them in a model with weights
drawn anew, how the answer falls and rises along their rankings, and which of them agree.

Shape and place tell everything; colour only repeats it. The same benchmark gives the same bytes.
"""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from veedor.report.benchmark import Benchmark, matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, LINE, ACCENT, BAD = "#1c2430", "#5b6675", "#d5dae1", "#1d4f73", "#9f2a1f"
MARKERS = ("o", "s", "D")
STYLES = ("-", (0, (5, 2)), (0, (1, 1.5)))
DRAWN = 5  # methods whose curves are told apart; the others are thin lines
SHADES = ("#1d4f73", "#b5651d", "#4a7c4e", "#7a3e6d", "#8a7a1f")
SIGNS = ("o", "s", "D", "^", "v")
TITLES = {
    "comprehensiveness": "Comprehensiveness: method − random",
    "sufficiency": "Sufficiency: random − method",
}


def draw(found: Benchmark) -> dict[str, bytes]:
    """The figure as SVG and PNG, by those names."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    names = found.ranked()
    style: Any = {"svg.hashsalt": "veedor-benchmark", "svg.fonttype": "path", "font.family": ["DejaVu Sans"]}
    with mpl.rc_context(style):
        rows = 0.3 * len(names) + 1.1
        figure = Figure(figsize=(12.6, rows + 5.2), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=[rows, 5.2], hspace=0.02)
        upper, lower = parts
        _upper(list(upper.subplots(1, 3, sharey=True)), found, names)
        _lower(list(lower.subplots(1, 3)), found, names)
        return {kind: _bytes(figure, kind) for kind in ("svg", "png")}


def _bytes(figure: "Figure", kind: str) -> bytes:
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(buffer, format=kind, metadata=metadata, dpi=150, facecolor="white")
    return buffer.getvalue()


def _upper(axes: "Sequence[Axes]", found: Benchmark, names: Sequence[str]) -> None:
    for place, metric in enumerate(TITLES):
        _beyond_chance(axes[place], found, names, metric)
    _weights(axes[2], found, names)
    axes[0].set_ylim(len(names) - 0.4, -0.6)
    axes[0].set_yticks(range(len(names)))
    axes[0].set_yticklabels([_label(found, name) for name in names], fontsize=9, color=INK)
    for one in axes:
        one.tick_params(axis="y", length=0)
        one.grid(axis="y", color=LINE, linewidth=0.5)
        one.set_axisbelow(True)


def _label(found: Benchmark, name: str) -> str:
    sheet = found.reliability.methods[name]
    return f"{name}  ×" if sheet.unreliable else name


def _beyond_chance(axes: "Axes", found: Benchmark, names: Sequence[str], metric: str) -> None:
    """Mean difference to random rankings with its interval, turned so that right is better; full: beyond chance."""
    operators = found.reliability.operators
    turn = -1.0 if metric == "sufficiency" else 1.0
    for lane, operator in enumerate(operators):
        shift = 0.22 * (lane - (len(operators) - 1) / 2)
        for place, name in enumerate(names):
            value = found.row(name, metric, operator)
            if value.difference is None:
                continue
            colour = ACCENT if found.beats(name, metric, operator) else BAD
            if value.low is not None and value.high is not None:
                ends = [turn * value.low, turn * value.high]
                axes.plot(ends, [place + shift] * 2, color=colour, linewidth=1.3, solid_capstyle="butt")
            face = colour if found.beats(name, metric, operator) else "white"
            axes.plot(
                [turn * value.difference], [place + shift], MARKERS[lane], color=colour, markerfacecolor=face, ms=4.6
            )
        axes.plot([], [], MARKERS[lane], color=SOFT, ms=4.6, label=operator)
    axes.axvline(0, color=SOFT, linewidth=0.9)
    _frame(axes, TITLES[metric], "right of 0: better than chance; bars: 95 % over texts")
    _legend(axes)


def _weights(axes: "Axes", found: Benchmark, names: Sequence[str]) -> None:
    limit = found.reliability.cascade_limit
    axes.axvspan(limit, 1.02, color="#f6ece9", linewidth=0, zorder=0)
    kinds = (("randomised_head", "o", "head anew"), ("randomised_all", "s", "all layers anew"))
    for metric, marker, label in (*kinds, ("control_model", "D", "permuted labels")):
        drawn = False
        for place, name in enumerate(names):
            value = found.row(name, metric)
            if value.estimate is not None:
                full = metric != "randomised_head"
                colour = BAD if metric == "randomised_all" and value.estimate > limit else ACCENT
                axes.plot(
                    [value.estimate], [place], marker, color=colour, markerfacecolor=colour if full else "white", ms=4.8
                )
                drawn = True
        if drawn:
            axes.plot(
                [], [], marker, color=SOFT, markerfacecolor="white" if marker == "o" else SOFT, ms=4.8, label=label
            )
    axes.set_xlim(-0.42, 1.04)
    axes.axvline(0, color=SOFT, linewidth=0.9)
    _frame(axes, "Spearman, other weights", f"shaded: above the limit of {limit:g}")
    if axes.get_legend_handles_labels()[0]:
        _legend(axes)


def _legend(axes: "Axes") -> None:
    """Above the axes, on the right: nothing is drawn there."""
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.01, 0.985), "ncols": 3, "borderaxespad": 0.2}
    axes.legend(
        fontsize=7.5, frameon=False, labelcolor=SOFT, handletextpad=0.1, columnspacing=0.9, handlelength=1.2, **place
    )


def _lower(axes: "Sequence[Axes]", found: Benchmark, names: Sequence[str]) -> None:
    for place, kind in enumerate(("deletion", "insertion")):
        _curves(axes[place], found, names, kind)
    _agreement(axes[2], found, names)


def _curves(axes: "Axes", found: Benchmark, names: Sequence[str], kind: str) -> None:
    """Mean probability by share of words, under the first operator; the best methods by name, chance dashed."""
    operator = found.reliability.operators[0]
    table = found.curves[(found.curves["kind"] == kind) & (found.curves["operator"] == operator)]
    lines = {name: own.sort_values("share") for name, own in table.groupby("method")}
    for name in names[DRAWN:]:
        if name in lines:
            axes.plot(100 * lines[name]["share"], lines[name]["value"], color=LINE, linewidth=0.9)
    for colour, name in zip(SHADES, names[:DRAWN], strict=False):
        if name in lines:
            look: Any = {"marker": SIGNS[names.index(name)], "ms": 3.6, "color": colour, "linewidth": 1.4}
            axes.plot(100 * lines[name]["share"], lines[name]["value"], label=name, **look)
    if "" in lines:
        style: Any = STYLES[1]
        axes.plot(
            100 * lines[""]["share"], lines[""]["value"], color=INK, linewidth=1.4, linestyle=style, label="random"
        )
    words = "taken out" if kind == "deletion" else "put into an empty text"
    _frame(axes, f"{kind.capitalize()} ({operator})", f"% of words {words}, highest score first")
    axes.set_ylabel(f"mean probability of “{_short(found.reliability.target)}”", fontsize=8, color=SOFT).set_parse_math(
        False
    )
    axes.tick_params(axis="y", labelsize=8, colors=SOFT, length=3)
    axes.spines["left"].set_visible(True)
    axes.spines["left"].set_color(LINE)
    if kind == "deletion":
        axes.legend(fontsize=7.5, frameon=False, labelcolor=INK)


def _agreement(axes: "Axes", found: Benchmark, names: Sequence[str]) -> None:
    pairs = matrix(found)
    grid = np.array([[_or_nan(pairs.get((one, other))) for other in names] for one in names])
    axes.imshow(grid, cmap="RdBu", vmin=-1.6, vmax=1.6)
    size = 8.0 if len(names) <= 8 else 6.0 if len(names) <= 13 else 4.6
    for row, one in enumerate(names):
        for column, other in enumerate(names):
            value = pairs.get((one, other))
            axes.text(column, row, "" if value is None else f"{value:.2f}", ha="center", va="center", fontsize=size)
    axes.set_xticks(range(len(names)), names, rotation=55, ha="right", rotation_mode="anchor", fontsize=7.5)
    axes.set_yticks(range(len(names)), names, fontsize=7.5)
    axes.tick_params(length=0, colors=INK)
    axes.set_title("Kendall's tau between methods", fontsize=9.5, color=INK, loc="left")
    for spine in axes.spines.values():
        spine.set_visible(False)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _short(label: str) -> str:
    return label if len(label) <= 24 else label[:23] + "…"


def _frame(axes: "Axes", title: str, below: str) -> None:
    axes.set_title(title, fontsize=9.5, color=INK, loc="left")
    axes.set_xlabel(below, fontsize=8, color=SOFT)
    axes.tick_params(axis="x", labelsize=8, colors=SOFT, length=3)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
