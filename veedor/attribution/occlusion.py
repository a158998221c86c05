"""Occlusion (Zeiler and Fergus, 2014; Li et al., 2016), word by word: what the score loses when a word is taken out.

The sub-words of a word go together, and so do the words of a phrase that is asked about: each is replaced by the mask
token (by the unknown token where there is none), or all are deleted; special tokens stay. On ids, never by decoding and
tokenising again. A score is shared evenly by the sub-words that went together, so that its sum is what was measured.
The changed text is no natural text: an honest intervention on the model, not on the world.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from veedor.attribution.question import Question, Scored, Span, UnsupportedModelError, undisturbed

if TYPE_CHECKING:
    from veedor.subjects import Encoding, Subject

BLOCK = 64  # texts whose variants are held at a time


def occlusion(question: Question) -> list[Scored]:
    """F(x) − F(x without the word) for each word, in the units of the score; signed."""
    from veedor.subjects.encoding import by_content

    operator = question.settings.occlusion.operator
    filler = filler_id(question.subject) if operator == "mask" else None
    answers: list[Scored | None] = [None] * len(question.encodings)
    order = by_content(question.encodings)
    with undisturbed(question.subject):
        for first in range(0, len(order), BLOCK):
            block = order[first : first + BLOCK]
            for row, answer in zip(block, _block(question, block, filler), strict=True):
                answers[row] = answer
            question.progress(question.method, first + len(block), len(order))
    return [answer for answer in answers if answer is not None]


def filler_id(subject: "Subject") -> int:
    """The id that stands where a word was: mask, or unknown where there is no mask."""
    for found in (subject.mask_id, subject.unk_id):
        if found is not None:
            return int(found)
    raise UnsupportedModelError(
        f"occlusion: the tokenizer of {subject.card.name} has neither a mask nor an unknown token to put in a word's "
        "place; set occlusion: {operator: delete}",
        code="no_mask_token",
    )


def units_of(encoding: "Encoding", span: Span | None) -> list[list[int]]:
    """Token positions that are removed together: what lies in the span, as one phrase, and the rest word by word.

    A word may carry a full stop or be half of the span; what is asked about the span must not mix with that. And the
    words of a phrase are taken out at once: the losses of one word at a time would add up to more than the phrase's.
    """
    phrase = -1
    units: dict[int, list[int]] = {}
    for position, word in enumerate(encoding.token_word):
        if word >= 0 and not encoding.special[position]:
            inside = span is not None and overlaps(encoding.offsets[position], span)
            units.setdefault(phrase if inside else word, []).append(position)
    return list(units.values())


def overlaps(offsets: Span, span: Span) -> bool:
    """Whether two runs of characters share one."""
    return offsets[0] < span[1] and offsets[1] > span[0]


def without(encoding: "Encoding", positions: Sequence[int], filler: int | None) -> "Encoding":
    """The encoding with these tokens replaced by the filler, or deleted where there is none."""
    gone = set(positions)
    if filler is not None:
        ids = [filler if position in gone else index for position, index in enumerate(encoding.ids)]
        return replace(encoding, ids=tuple(ids))
    stay = [position for position in range(len(encoding.ids)) if position not in gone]
    return replace(
        encoding,
        ids=tuple(encoding.ids[position] for position in stay),
        offsets=tuple(encoding.offsets[position] for position in stay),
        special=tuple(encoding.special[position] for position in stay),
        token_word=tuple(encoding.token_word[position] for position in stay),
    )


@dataclass(frozen=True)
class _Variants:
    """The texts of a block and all they become, each distinct row of ids once."""

    encodings: "list[Encoding]"
    place: dict[tuple[int, ...], int]

    def add(self, encoding: "Encoding") -> int:
        key = tuple(encoding.ids)
        if key not in self.place:
            self.place[key] = len(self.encodings)
            self.encodings.append(encoding)
        return self.place[key]


def _block(question: Question, rows: Sequence[int], filler: int | None) -> list[Scored]:
    variants = _Variants([], {})
    plans = []
    for row in rows:
        encoding = question.encodings[row]
        units = units_of(encoding, question.span(row))
        plans.append(
            (variants.add(encoding), [(unit, variants.add(without(encoding, unit, filler))) for unit in units])
        )
    heights = score(question, variants.encodings)
    return [
        _scored(len(question.encodings[row].ids), heights[whole], [(unit, heights[place]) for unit, place in plan])
        for row, (whole, plan) in zip(rows, plans, strict=True)
    ]


def _scored(tokens: int, whole: float, parts: Sequence[tuple[list[int], float]]) -> Scored:
    scores = np.zeros(tokens)
    for unit, height in parts:
        scores[unit] = (whole - height) / len(unit)
    return Scored(scores, nodes=1 + len(parts))


def score(question: Question, encodings: "Sequence[Encoding]") -> np.ndarray:
    """The explained score of each encoding, (n,) float64."""
    import torch

    subject, heights = question.subject, np.zeros(len(encodings))
    with torch.no_grad():
        for batch in subject.batches(encodings, size=question.settings.batch_size):
            margin = subject.margin(subject.logits(batch), question.target_index, scale=question.scale)
            heights[list(batch.rows)] = margin.double().cpu().numpy()
    return heights
