"""How widely row weights are spread over tokens: entropy and effective support, of weights or of their logarithms.

Shannon entropy in nats; effective support is its exponential: how many tokens would have this entropy if they shared
evenly, from 1 to n. Pure functions; deep stacks hand over logarithms, where the weights themselves would be 0.
"""

import numpy as np

from veedor.errors import UsageError


def entropy(row: np.ndarray) -> float:
    """Entropy in nats of non-negative weights (n,), made to sum to 1; UsageError where there is no weight.

    >>> round(entropy(np.array([0.5, 0.25, 0.25])), 4)
    1.0397
    """
    total = float(row.sum())
    if not total > 0:
        raise UsageError(f"entropy: weights sum to {total}, expected some weight above 0")
    share = row[row > 0] / total
    return float(abs(-(share * np.log(share)).sum()))


def effective_support(row: np.ndarray) -> float:
    """exp of the entropy: 1 where one token holds everything, n where all n hold the same.

    >>> round(effective_support(np.array([1.0, 1.0, 0.0])), 4)
    2.0
    """
    return float(np.exp(entropy(row)))


def log_entropy(logs: np.ndarray) -> float:
    """Entropy in nats of weights given by their natural logarithms (n,); -inf is a weight of 0."""
    top = logs.max()
    if not np.isfinite(top):
        raise UsageError(f"entropy: the largest logarithm is {top}, expected a finite one")
    largest = int(logs.argmax())
    scaled = np.exp(logs - top)
    inside = np.where(scaled > 0, logs - top, 0.0)
    scaled[largest] = 0.0  # its share of the total is 1, and 1 + 1e-20 would be lost outside log1p
    rest = scaled.sum()
    return float(abs(np.log1p(rest) - (scaled * inside).sum() / (1 + rest)))
