"""One text's explanation on the terminal: coloured words, a table of scores with bars, several methods side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.console import print_table, stdout
from pipeline.explain_answers import Explained, Told
from pipeline.explain_data import doubts_in_words
from pipeline.explain_pieces import Scored, scored, tokens_of, words_of

if TYPE_CHECKING:
    from rich.text import Text

FOR = (214, 96, 77)  # raises the score
AGAINST = (67, 130, 195)  # lowers it; told apart from FOR also by the colour-blind
MUCH = (224, 164, 40)  # how much, for methods that know no direction
BAR, NARROW = 24, 10
LONGEST = 32  # characters of a word in a table
ABREAST = 4  # methods that a table has room for


def show(explained: Explained, *, tokens: bool = False) -> None:
    """Each method's coloured line, one table of all their scores, and the answers.

    Without colours (NO_COLOR, no terminal) the table says it all.
    """
    console = stdout()
    coloured = console.is_terminal and not console.no_color
    for method in explained.asked:
        told = _told(explained, method)
        if coloured or method == explained.asked[0]:
            console.print(painted(explained, told, tokens=tokens))
        console.print(about(explained, told))
        if "baseline_agreement" in told.attribution.options:
            console.print(agreement(told))
        if coloured:
            console.print(legend(told))
        if method in explained.doubts:
            why = "; ".join(doubts_in_words(explained.doubts[method])["en"])
            console.print(f"  marked unreliable on this model by the audit: {why}")
    for method, error in explained.failed.items():
        console.print(f"{method}: not on this model: {error}")
    for first in range(0, len(explained.asked), ABREAST):
        print_scores(explained, explained.asked[first : first + ABREAST], tokens=tokens)
    print_table(None, ("label", ">probability"), [(label, f"{value:.4f}") for label, value in explained.answers])


def print_scores(explained: Explained, methods: Sequence[str], *, tokens: bool) -> None:
    """A row a word (or token), a column of numbers and one of bars for each of these methods."""
    several = len(explained.asked) > 1
    columns, cells = ["token" if tokens else "word"], []
    for method in methods:
        told = _told(explained, method)
        meaning = "- lowers, + raises" if signed(told) else "how much"
        columns += [f">{method}" if several else ">score", "-/+" if several and signed(told) else meaning]
        cells.append([_cells(own, told, several) for own in scored(explained, told, tokens=tokens)])
    pieces, _ = tokens_of(explained) if tokens else words_of(explained)
    rows = [
        (brief(piece.name), *(part for column in cells for part in column[place])) for place, piece in enumerate(pieces)
    ]
    print_table(None, columns, rows)


def brief(name: str) -> str:
    """A name that leaves room for numbers beside it.

    >>> brief("w" * 50)[-3:], brief("word")
    ('ww…', 'word')
    """
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"


def _cells(own: Scored, told: Told, several: bool) -> tuple[str, str]:
    if own.score is None:
        return "", "left out"
    number = f"{own.score:+.4f}" if signed(told) else f"{own.score:.4f}"
    return number, bar(own, NARROW if several else BAR)


def bar(own: Scored, width: int = BAR) -> str:
    """The score as a bar of signs.

    >>> from pipeline.explain_pieces import Piece
    >>> bar(Scored(Piece("", "x", "x"), -0.5, 0.25))
    '------'
    """
    return ("-" if own.against else "+") * round(width * own.share)


def about(explained: Explained, told: Told) -> str:
    """Method, target (and whether anybody named it) and completeness in a line."""
    found = told.attribution
    by_default = "; assumed: label 1 of two, name it with --target" if explained.assumed else ""
    target = f", target {found.target!r} ({found.score_function}{by_default})" if found.target else ", about no label"
    gap = "" if found.gap is None else f", completeness gap {100 * found.gap:.2g} %"
    cut = ", cut to the model's window" if "truncated" in found.flags else ""
    flat = ", score flat at the text (saturated)" if "saturated" in found.flags else ""
    return f"{found.method}{target}{gap}{flat}{cut}"


def agreement(told: Told) -> str:
    """How far the words' ranks are those from the second baseline too."""
    of = told.attribution.options
    spearman, kendall = (float(of[name] or 0.0) for name in ("baseline_agreement", "baseline_kendall"))
    return (
        f"  from the baseline {of['second_baseline']} as from {of['baseline']}: ranks of words agree to Spearman "
        f"{spearman:.2f}, Kendall {kendall:.2f}"
    )


def legend(told: Told) -> str:
    """What the colours mean."""
    return (
        "  red raises, blue lowers" if signed(told) else "  the stronger the colour, the more; neither for nor against"
    )


def signed(told: Told) -> bool:
    """Whether the method tells for from against."""
    from veedor.attribution import METHODS

    return METHODS[told.attribution.method].signed


def painted(explained: Explained, told: Told, *, tokens: bool = False) -> "Text":
    """The text with each word's ground coloured by its score, faint for little."""
    from rich.text import Text

    line = Text()
    for own in scored(explained, told, tokens=tokens):
        line.append(own.piece.before)
        colour = (AGAINST if own.against else FOR) if signed(told) else MUCH
        shade = ",".join(str(round(255 - (255 - part) * own.share)) for part in colour)
        line.append(own.piece.shown, style=f"black on rgb({shade})" if own.share > 0 else "")
    line.append((tokens_of(explained) if tokens else words_of(explained))[1])
    return line


def _told(explained: Explained, method: str) -> Told:
    told = explained.told(method)
    assert told is not None  # `asked` holds only methods that answered
    return told
