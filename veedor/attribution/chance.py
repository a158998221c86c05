"""Random scores: what any method is held against. Drawn from a text's own tokens and the seed, so order is nothing."""

import numpy as np

from veedor.attribution.question import Question, Scored
from veedor.subjects.perturbation import content_seed


def random_scores(question: Question) -> list[Scored]:
    """Uniform scores in [0, 1) for each token; the same text and seed give the same scores wherever the text stands."""
    return [
        Scored(np.random.default_rng(content_seed(encoding, question.seed)).random(len(encoding.ids)), nodes=0)
        for encoding in question.encodings
    ]
