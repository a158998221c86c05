"""A benchmark on the terminal: which methods can be trusted on this model, beside chance, and which of them agree."""

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.console import print_table, stdout

if TYPE_CHECKING:
    from veedor.report.benchmark import Benchmark

CONDITIONS = ("comprehensiveness", "sufficiency")
NARROW = 9  # letters of a method's name over a column of the agreement table


def print_benchmark(found: "Benchmark", out: Path | None) -> None:
    """Everything in tables, then the files."""
    console = stdout()
    made, card = found.reliability, found.subject
    console.print(f"{card.name}, target {made.target!r} ({made.score_function})")
    left = ", ".join(f"{count} {why}" for why, count in found.left_out.items() if count)
    console.print(
        f"{found.texts} of {found.of_texts} distinct texts, {found.words:.1f} words each, seed {found.seed}"
        f"{f' ({left} left out)' if left else ''}"
    )
    for note in made.notes:
        if note.code == "challenge_no_mask":
            console.print("the tokenizer has neither a mask nor an unknown token: words are deleted only")
    print_scores(found)
    print_chance(found)
    print_agreement(found)
    print_trust(found)
    if out is not None:
        from pipeline.summary import shown

        for path in sorted(out.glob("benchmark.*")):
            console.print(f"file      {shown(path)}")


def print_scores(found: "Benchmark") -> None:
    """Means over texts, with those of random rankings in the last line."""
    from veedor.report.benchmark import cell, columns

    told = columns(found)
    rows = []
    for name in found.ranked():
        values = [cell(found.row(name, metric, operator).estimate) for _, metric, operator in told]
        seeds = cell(found.methods[name].between_seeds)
        rows.append((name, *values, seeds, f"{found.methods[name].evaluations:.0f}"))
    heads = [f">{heading}" for heading, _, _ in told]
    print_table("mean over texts", ("method", *heads, ">2 seeds", ">asked"), rows)
    stdout().print(
        "comp(rehensiveness), ins(ertion) area, tau with leave-one-out: more is better;\n"
        "suff(iciency), del(etion) area, infid(elity), max-sens(itivity), likeness to a model whose head or layers "
        "were drawn anew: less.\n*: scaled by least squares. 2 seeds: Kendall's tau of words under two seeds. asked: "
        "model evaluations a text\n"
    )


def print_chance(found: "Benchmark") -> None:
    """Whether each method beats random rankings, with the paired interval, under every operator."""
    from veedor.report.benchmark import cell

    pairs = [(metric, operator) for metric in CONDITIONS for operator in found.reliability.operators]
    rows = []
    for name in found.ranked():
        cells = []
        for metric, operator in pairs:
            value, beats = found.row(name, metric, operator), found.beats(name, metric, operator)
            interval = f"{plus(value.difference)} [{plus(value.low)}, {plus(value.high)}]"
            cells.append("–" if beats is None else f"{'yes' if beats else 'no '} {interval}")
        rows.append((name, *cells))
    chance = [cell(found.row(found.ranked()[0], metric, operator).random) for metric, operator in pairs]
    rows.append(("(random rankings get)", *chance))
    heads = [f"{metric[:4]} {operator}" for metric, operator in pairs]
    print_table("beats random? mean of (method − random) [95 % over texts]", ("method", *heads), rows)


def plus(value: float | None) -> str:
    """Two digits and a sign.

    >>> plus(0.567), plus(-0.001), plus(None)
    ('+0.57', '-0.00', '–')
    """
    return "–" if value is None else f"{value:+.2f}"


def print_agreement(found: "Benchmark") -> None:
    """Kendall's tau between methods."""
    from veedor.report.benchmark import matrix

    names, pairs = found.ranked(), matrix(found)
    if len(names) < 2:
        return
    rows = []
    for place, one in enumerate(names):
        values = [pairs.get((one, other)) for other in names[:place]]
        told = ["–" if value is None else f"{value:.2f}" for value in values]
        rows.append((f"{place + 1} {one}", *told, *([""] * (len(names) - 1 - place))))
    heads = [f">{place + 1}" for place in range(len(names) - 1)]
    print_table("agreement: Kendall's tau between methods, mean over texts", ("method", *heads), rows)


def print_trust(found: "Benchmark") -> None:
    """Marks by the rules fixed beforehand, then what was refused."""
    from veedor.report.benchmark import named_marks

    rows = []
    for name in found.ranked():
        sheet = found.reliability.methods[name]
        told = "could not be told" if sheet.unreliable is None else "UNRELIABLE" if sheet.unreliable else "no mark"
        rows.append((name, told, named_marks(sheet.marks)))
    rows += [(name, "refused", why) for name, why in found.refused.items()]
    print_table("trust on this model", ("method", "mark", "why"), rows)
