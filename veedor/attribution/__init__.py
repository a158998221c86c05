"""Attribution: which words a classifier's score leans on, by methods that declare what their scores mean.

`METHODS` is the contents page. Attributions are evidence for a reader, never a verdict: the term-swap effect is that.
"""

from veedor.attribution.column_form import Reached, reach, reach_of_spans
from veedor.attribution.methods import METHODS, Method, answer, attribute, attributions, explain
from veedor.attribution.question import Jitter, Question, Scored, UnsupportedModelError
from veedor.attribution.result import Attribution, span_score

__all__ = [
    "METHODS",
    "Attribution",
    "Jitter",
    "Method",
    "Question",
    "Reached",
    "Scored",
    "UnsupportedModelError",
    "answer",
    "attribute",
    "attributions",
    "explain",
    "reach",
    "reach_of_spans",
    "span_score",
]
