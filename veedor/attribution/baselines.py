"""The text without content that integrated gradients start from, and how far a second one agrees with the first.

An attribution is always against something: with another baseline other words may lead (Sundararajan et al., 2017,
section 1.1; Sturmfels et al., 2020). The settings name a baseline that fits every text: special tokens stay, every
other place holds the mask token, the padding token, zero or the mean embedding. A question may bring its own:

- a text: its tokens, without special ones, stand in the places of the text's own, first to first; where it is longer
  it is cut, where it is shorter the places left over hold the settings' baseline;
- token ids (integers): the same, as they are;
- a vector (d,) of floats: it stands in every place that holds no special token.
"""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from veedor.attribution.question import Question
from veedor.errors import UsageError
from veedor.records import Scalar

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, Encoding
    from veedor.subjects.subject import Baseline

SHOWN = 80  # characters of a baseline text that stand in a record


def starts_of(question: Question, batch: "Batch", kind: "Baseline | None" = None) -> "torch.Tensor":
    """Embeddings of the baselines, (b, n, d): of this kind, or the question's own, or the settings'.

    UsageError where the question's own does not fit the model.
    """
    import torch

    subject, named = question.subject, question.settings.integrated_gradients.baseline
    starts = subject.baseline(batch, kind or named).detach()
    if kind is not None or question.baseline is None:
        return starts
    own = own_baseline(question)
    if own.dtype.kind == "f":
        vector = torch.as_tensor(own, dtype=starts.dtype, device=starts.device)
        return torch.where(batch.special.unsqueeze(-1), starts, vector)
    filled, content = starts.clone(), subject.embed(torch.as_tensor(own, device=starts.device)).detach()
    for place, special in enumerate(batch.special):
        at = torch.nonzero(~special)[: len(content), 0]
        filled[place, at] = content[: len(at)]
    return filled


def own_baseline(question: Question) -> np.ndarray:
    """The question's own baseline as ids (k,) int64 or as a vector (d,) float64; UsageError says what is wrong."""
    table = question.subject.model.get_input_embeddings().weight
    if isinstance(question.baseline, str):
        [encoding] = question.subject.encode([question.baseline])
        kept = [own for own, special in zip(encoding.ids, encoding.special, strict=True) if not special]
        return np.array(kept, dtype=np.int64)
    given = np.asarray(question.baseline)
    if given.ndim == 1 and given.dtype.kind == "f" and given.shape[0] == table.shape[1] and np.isfinite(given).all():
        return given.astype(np.float64)
    if given.ndim == 1 and given.dtype.kind in "iu" and len(given) and 0 <= given.min() <= given.max() < table.shape[0]:
        return given.astype(np.int64)
    raise UsageError(
        f"baseline is {type(question.baseline).__name__} of shape {given.shape}, {question.baseline!r:.40}; expected a "
        f"text, token ids (integers from 0 to {table.shape[0] - 1}), or {table.shape[1]} finite floats, as wide as the "
        f"word embeddings of {question.subject.name}"
    )


def baseline_in_words(question: Question) -> dict[str, Scalar]:
    """What stands in the record about a baseline that the question brought; nothing where it brought none."""
    if question.baseline is None:
        return {}
    if isinstance(question.baseline, str):
        return {"baseline": f"text: {question.baseline:.{SHOWN}}"}
    own = own_baseline(question)
    what = f"vector ({len(own)},)" if own.dtype.kind == "f" else f"{len(own)} token ids"
    return {"baseline": f"{what}, sha256 {hashlib.sha256(own.tobytes()).hexdigest()[:16]}"}


def agreement(first: np.ndarray, second: np.ndarray, encoding: "Encoding") -> Mapping[str, float]:
    """Rank agreement of two baselines' word scores: `baseline_agreement` (Spearman) and `baseline_kendall` (tau-b).

    Token scores (n,) are summed to words; special tokens are left out. Nothing where there is no order to compare:
    fewer than two words, or all words alike.
    """
    from scipy.stats import kendalltau, spearmanr

    words = [words_of(scores, encoding) for scores in (first, second)]
    if len(encoding.words) < 2 or any(np.ptp(own) == 0 for own in words):
        return {}
    return {
        "baseline_agreement": float(spearmanr(*words).statistic),
        "baseline_kendall": float(kendalltau(*words).statistic),
    }


def words_of(scores: np.ndarray, encoding: "Encoding") -> np.ndarray:
    """Sum of each word's token scores, (n_words,)."""
    total = np.zeros(len(encoding.words))
    for score, word in zip(scores, encoding.token_word, strict=True):
        if word >= 0:
            total[word] += score
    return total
