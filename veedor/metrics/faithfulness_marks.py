"""When a method is marked unreliable on a model: by rules that are fixed before the model is looked at.

A method with a target is marked where the interval of (method − random) comprehensiveness does not lie above 0 under
every operator, where its scores survive the randomisation of all layers (Spearman of |φ| above a limit), or where its
completeness gap is above tolerance on too many texts. A method without a target is marked by comprehensiveness alone:
it cannot know the classifier's head, and makes no statement about a label that could be wrong.
"""

from dataclasses import dataclass

import pandas as pd

from veedor.metrics.faithfulness_summary import better

NOT_BEYOND_RANDOM = "not_beyond_random"
SURVIVES_RANDOMISATION = "survives_randomisation"
GAPS_TOO_WIDE = "gaps_too_wide"


@dataclass(frozen=True)
class Limits:
    """`cascade`: Spearman after the full cascade, above which a method is marked; `gaps`: share of texts with a gap."""

    cascade: float = 0.5
    gaps: float = 0.05


def marks(table: pd.DataFrame, *, targeted: bool, gap_share: float | None, limits: Limits) -> tuple[str, ...] | None:
    """Codes of the reasons against one method, () where there are none; None where comprehensiveness was not measured.

    table: the method's rows of `summarise`. gap_share: share of texts above tolerance, None for methods without a gap.
    """
    found = table[table["metric"] == "comprehensiveness"]
    beyond = [better("comprehensiveness", low, high) for low, high in found[["low", "high"]].itertuples(index=False)]
    if not beyond or any(one is None for one in beyond):
        return None
    reasons = [] if all(beyond) else [NOT_BEYOND_RANDOM]
    if targeted:
        after = table.loc[table["metric"] == "randomised_all", "estimate"].dropna()
        reasons += [SURVIVES_RANDOMISATION] if len(after) and float(after.iloc[0]) > limits.cascade else []
        reasons += [GAPS_TOO_WIDE] if gap_share is not None and gap_share > limits.gaps else []
    return tuple(reasons)
