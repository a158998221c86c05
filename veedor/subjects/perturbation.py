"""Texts with some of their words taken out, on token ids: what perturbation methods and faithfulness metrics share.

Never by decoding and tokenising again: the tokens that stay are the very tokens the model saw, special tokens always
stay, and the sub-words of a word go together. Three operators. mask: the mask token, or the unknown token where there
is none. delete: the ids are removed. resample: ids drawn from a pool of tokens, by default those of the texts at hand,
so that what is put in comes from the data (Kim et al., 2020); a draw may give back the very token it replaces.
A changed text is no natural text: an honest intervention on the model, not on the world.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from veedor.errors import SubjectError, UsageError, unknown
from veedor.subjects.encoding import Encoding
from veedor.subjects.words import Span

if TYPE_CHECKING:
    import torch

    from veedor.subjects.heads import Scale
    from veedor.subjects.subject import Subject

Operator = Literal["mask", "delete", "resample"]
Unit = Literal["word", "token"]
OPERATORS: tuple[Operator, ...] = ("mask", "delete", "resample")
DRAWS = 5  # replacements that `resample` averages over
PHRASE = -1  # key of the unit that a span makes


class NoFillerError(SubjectError):
    """The tokenizer has no token that can stand where a word was; `code` is the reason, for a report."""

    code = "no_mask_token"


def content_seed(encoding: Encoding, seed: int) -> int:
    """A seed that depends on nothing but the text's tokens and the audit's seed, in [0, 2^64)."""
    content = f"{seed}:{','.join(str(int(index)) for index in encoding.ids)}"
    return int.from_bytes(hashlib.sha256(content.encode()).digest()[:8], "big")


def filler_id(subject: "Subject") -> int:
    """The id that stands where a word was: mask, or unknown where there is no mask; NoFillerError without both."""
    for found in (subject.mask_id, subject.unk_id):
        if found is not None:
            return int(found)
    raise NoFillerError(
        f"the tokenizer of {subject.card.name} has neither a mask nor an unknown token to put in a word's place; "
        "choose another operator in the settings, for example occlusion: {operator: delete}"
    )


def units_of(encoding: Encoding, span: Span | None = None, *, unit: Unit = "word") -> list[list[int]]:
    """Token positions that are taken out together: what lies in the span, as one phrase, and the rest unit by unit.

    A word may carry a full stop or be half of the span; what is asked about the span must not mix with that. And the
    words of a phrase are taken out at once: the losses of one word at a time would add up to more than the phrase's.
    Special tokens, and tokens that stand for no visible character, are in no unit.
    """
    units: dict[int, list[int]] = {}
    for position, word in enumerate(encoding.token_word):
        if word >= 0 and not encoding.special[position]:
            inside = span is not None and overlaps(encoding.offsets[position], span)
            own = word if unit == "word" else position
            units.setdefault(PHRASE if inside else own, []).append(position)
    return list(units.values())


def overlaps(offsets: Span, span: Span) -> bool:
    """Whether two runs of characters share one."""
    return offsets[0] < span[1] and offsets[1] > span[0]


def without(encoding: Encoding, positions: Iterable[int], filler: int | Sequence[int] | None) -> Encoding:
    """The encoding with these tokens replaced by the filler, or deleted where there is none.

    `filler`: one id, or one for each token of the text, of which those at `positions` are taken.
    """
    gone = set(positions)
    if filler is not None:
        fill = [filler] * len(encoding.ids) if isinstance(filler, int) else filler
        ids = [int(fill[position]) if position in gone else index for position, index in enumerate(encoding.ids)]
        return replace(encoding, ids=tuple(ids))
    stay = [position for position in range(len(encoding.ids)) if position not in gone]
    return replace(
        encoding,
        ids=tuple(encoding.ids[position] for position in stay),
        offsets=tuple(encoding.offsets[position] for position in stay),
        special=tuple(encoding.special[position] for position in stay),
        token_word=tuple(encoding.token_word[position] for position in stay),
    )


def pool_of(subject: "Subject", encodings: Iterable[Encoding]) -> tuple[int, ...]:
    """Every token of the texts that is not special, as often as it stands there, sorted: the order of texts is nothing.

    Special tokens that a stranger wrote out in a text are left out too; unknown tokens stay.
    """
    special = set(subject.tokenizer.all_special_ids) - {subject.unk_id}
    return tuple(
        sorted(
            int(index)
            for encoding in encodings
            for index, flag in zip(encoding.ids, encoding.special, strict=True)
            if not flag and index not in special
        )
    )


def resampled(encoding: Encoding, pool: Sequence[int], *, seed: int, draws: int = DRAWS) -> list[list[int]]:
    """Replacements for every token of a text, (draws, n) ids, drawn with replacement from the pool.

    Fixed by the text's own tokens and the seed: whatever is taken out of a text, the same position gets the same ids,
    so that what is compared differs in nothing else. UsageError where the pool is empty.
    """
    if not len(pool):
        raise UsageError(
            "operator resample: no text holds a token that is not special, so there is nothing to draw from; give a "
            "pool of token ids, or choose operator: mask"
        )
    random = np.random.default_rng(content_seed(encoding, seed))
    places = random.integers(len(pool), size=(draws, len(encoding.ids)))
    return [[int(pool[place]) for place in row] for row in places]


@dataclass(frozen=True)
class Eraser:
    """One operator, ready to be used on any text of one subject; made by `eraser`."""

    operator: Operator
    filler: int | None = None
    pool: tuple[int, ...] = ()
    seed: int = 0
    draws: int = DRAWS

    def fillers(self, encoding: Encoding) -> list[int | Sequence[int] | None]:
        """What goes in the place of this text's tokens, once for each draw; see `without`."""
        if self.operator == "resample":
            return list(resampled(encoding, self.pool, seed=self.seed, draws=self.draws))
        return [self.filler]

    def variants(self, encoding: Encoding, positions: Iterable[int]) -> list[Encoding]:
        """The text without these tokens: one encoding, or one for each draw, over which the score is averaged."""
        gone = set(positions)
        return [without(encoding, gone, filler) for filler in self.fillers(encoding)] if gone else [encoding]


def eraser(
    subject: "Subject",
    operator: Operator,
    encodings: Sequence[Encoding] = (),
    *,
    pool: Sequence[int] | None = None,
    seed: int = 0,
    draws: int = DRAWS,
) -> Eraser:
    """The operator for this subject. `encodings`: where `resample` takes its tokens from, unless a pool is given."""
    if operator not in OPERATORS:
        raise UsageError(unknown("operator", operator, OPERATORS))
    if operator == "mask":
        return Eraser(operator, filler=filler_id(subject))
    if operator == "delete":
        return Eraser(operator)
    drawn_from = pool_of(subject, encodings) if pool is None else tuple(sorted(map(int, pool)))
    return Eraser(operator, pool=drawn_from, seed=seed, draws=draws)


@dataclass(frozen=True)
class Variants:
    """Texts to be scored, each distinct row of ids once, whoever asks for it."""

    encodings: list[Encoding] = field(default_factory=list)
    place: dict[tuple[int, ...], int] = field(default_factory=dict)

    def add(self, encoding: Encoding) -> int:
        """Where this text's answer will stand."""
        if encoding.ids not in self.place:
            self.place[encoding.ids] = len(self.encodings)
            self.encodings.append(encoding)
        return self.place[encoding.ids]

    def add_all(self, encodings: Iterable[Encoding]) -> list[int]:
        """Where the answers of several texts will stand."""
        return [self.add(encoding) for encoding in encodings]


def score(
    subject: "Subject", encodings: Sequence[Encoding], target_index: int, *, size: int = 32, scale: "Scale" = "logit"
) -> np.ndarray:
    """The target's margin (or probability) for each text, (n,) float64; in batches of `size`, cut by length."""
    import torch

    if not encodings:
        return np.zeros(0)
    with torch.no_grad():
        margin = subject.margin(answers(subject, encodings, size=size), target_index, scale=scale)
    return np.asarray(margin.double().cpu().numpy())


def answers(subject: "Subject", encodings: Sequence[Encoding], *, size: int = 32) -> "torch.Tensor":
    """The classifier's outputs for each text, (n, outputs), in the order given; at least one text."""
    import torch

    found: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        for batch in subject.batches(encodings, size=size):
            found.update(zip(batch.rows, subject.logits(batch), strict=True))
    return torch.stack([found[row] for row in range(len(encodings))])
