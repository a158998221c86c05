"""What the page of one text is told: all that its script reads, in both languages, visible and ready for JSON."""

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.explain_answers import LONG, Explained, Told
from pipeline.explain_maps import AttentionMaps
from pipeline.explain_pieces import Piece, tokens_of, words_of
from veedor.errors import VeedorError
from veedor.records import finite

if TYPE_CHECKING:
    from veedor.report.language import Words

LANGUAGES = ("en", "es")
REST = 2000  # characters behind the model's window that are shown
RECOMPUTED = ("rollout", "attention")


def data_of(explained: Explained, language: str) -> dict[str, object]:
    """All that the page's script reads."""
    from veedor import __version__
    from veedor.attribution import METHODS

    return {
        "model": shown(explained.model),
        "digest": explained.digest,
        "version": __version__,
        "answer": [shown(top(explained)[0]), top(explained)[1]],
        "labels": [shown(label) for label in explained.targets],
        "hidden_labels": len(explained.answers) - len(explained.targets),
        "assumed": explained.assumed,
        "truncated": explained.encoding.truncated,
        "long": LONG,
        "words": [_piece(piece) for piece in words_of(explained)[0]],
        "tokens": [_piece(piece) for piece in tokens_of(explained)[0]],
        "token_word": list(explained.encoding.token_word),
        "rest": {"words": rest_of(explained), "tokens": shown(tokens_of(explained)[1])[:REST]},
        "methods": [method_of(explained, name) for name in METHODS if explained.told(name)],
        "left_out": list(explained.left_out),
        "failed": {one: reasons(explained, one) for one in LANGUAGES},
        "doubts": {name: doubts_in_words(codes) for name, codes in explained.doubts.items()},
        "maps": None if explained.maps is None else packed(explained.maps),
        "language": language,
        "method": explained.asked[0],
        "languages": {one: _for_page(one) for one in LANGUAGES},
    }


def top(explained: Explained) -> tuple[str, float]:
    """The most probable label."""
    return max(explained.answers, key=lambda pair: pair[1])


def method_of(explained: Explained, name: str) -> dict[str, object]:
    """One method's declared properties and its scores, by label where it is about one."""
    from veedor.attribution import METHODS

    method = METHODS[name]
    labels = explained.targets if method.targeted else (None,)
    return {
        "name": name,
        "targeted": method.targeted,
        "signed": method.signed,
        "additive": method.additive,
        "recomputed": name in RECOMPUTED and explained.maps is not None,
        "scores": [_scores(explained.found[name, label]) for label in labels],
    }


def _scores(told: Told) -> dict[str, object]:
    found = told.attribution
    return {
        "tokens": [finite(score) for score in told.tokens],
        "words": [finite(score) for score in found.word_scores],
        "gap": found.gap,
        "nodes": found.nodes,
        "function": found.score_function,
        "flags": list(found.flags),
        "options": {key: shown(str(value)) for key, value in found.options.items()},
    }


def packed(maps: AttentionMaps) -> dict[str, object]:
    """The maps as base64 of float32, little endian, in the order (layers, heads, n, n)."""
    layers, heads, tokens, _ = maps.values.shape
    return {
        "layers": layers,
        "heads": heads,
        "tokens": tokens,
        "fused": maps.fused,
        "causal": maps.causal,
        "read": [float(weight) for weight in maps.read],
        "values": base64.b64encode(maps.values.astype("<f4").tobytes()).decode("ascii"),
    }


def rest_of(explained: Explained) -> str:
    """What follows the last word, up to a limit."""
    rest = shown(words_of(explained)[1])
    return rest if len(rest) <= REST else f"{rest[:REST]} … (+{len(rest) - REST:,})"


def doubts_in_words(codes: Sequence[str]) -> dict[str, list[str]]:
    """Why a method is marked unreliable, by language."""
    told = {one: words_in(one)["explain"]["marks"] for one in LANGUAGES}
    return {one: [told[one].get(code, code) for code in codes] for one in LANGUAGES}


def reasons(explained: Explained, language: str) -> list[dict[str, object]]:
    """Each method that this model does not allow, and why: in the language where there are words for it."""
    words = words_in(language)
    return [
        {"method": words.code("method_names", name), "why": _reason(error, words)}
        for name, error in explained.failed.items()
    ]


def _reason(error: VeedorError, words: "Words") -> str:
    code = getattr(error, "code", "")
    told = words.reason(code)
    return shown(str(error)) if told == code else told


def _for_page(language: str) -> dict[str, object]:
    """The words of a language that the page's script says."""
    words = words_in(language)
    sections = ("explain", "method_names", "score_function", "flags")
    return {name: words[name] for name in sections} | {"decimal": words["language"]["decimal"]}


def words_in(language: str) -> "Words":
    """The words of a language."""
    from veedor.report.language import read_words
    from veedor.report.render import project_root

    return read_words(project_root() / "reports" / "words", language)


def _piece(piece: Piece) -> list[object]:
    return [shown(piece.before), shown(piece.shown), shown(piece.name), piece.special]


def shown(text: str) -> str:
    """Text of others without characters that act."""
    from veedor.report.language import visible

    return visible(text)
