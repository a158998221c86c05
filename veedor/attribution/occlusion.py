"""Occlusion (Zeiler and Fergus, 2014; Li et al., 2016): what the score loses when a word, or a token, is taken out.

The sub-words of a word go together, and so do the words of a phrase that is asked about; how they are taken out is the
operator's business (`veedor.subjects.perturbation`). A score is shared evenly by the sub-words that went together, so
that its sum is what was measured. Signed; not complete: what two words do together is in neither's score, or in both.
"""

from collections.abc import Sequence

from veedor.attribution.perturbation import eraser_of, heights, in_blocks, shared_evenly
from veedor.attribution.question import Question, Scored
from veedor.subjects.perturbation import Eraser, Variants, filler_id, overlaps, units_of, without

__all__ = ["filler_id", "occlusion", "overlaps", "units_of", "without"]


def occlusion(question: Question) -> list[Scored]:
    """F(x) − F(x without the unit) for each unit, in the units of the score; with several draws their mean."""
    removal = eraser_of(question, question.settings.occlusion)
    return in_blocks(question, lambda rows: _block(question, rows, removal))


def _block(question: Question, rows: Sequence[int], removal: Eraser) -> list[Scored]:
    variants, plans = Variants(), []
    for row in rows:
        encoding = question.encodings[row]
        units = units_of(encoding, question.span(row), unit=question.settings.occlusion.unit)
        changed = [variants.add_all(removal.variants(encoding, unit)) for unit in units]
        plans.append((variants.add(encoding), units, changed))
    height = heights(question, variants)
    answers = []
    for row, (whole, units, changed) in zip(rows, plans, strict=True):
        losses = [height[whole] - height[places].mean() for places in changed]
        scores = shared_evenly(len(question.encodings[row].ids), units, losses)
        answers.append(Scored(scores, nodes=1 + sum(map(len, changed))))
    return answers
