"""One flat frame of an evaluation set and what the model answered: a row a text, sorted by id.

Checked here, once: the two records speak of the same rows, and every answer is a finite number.
"""

from typing import Literal

import numpy as np
import pandas as pd

from veedor.errors import SubjectError

Scale = Literal["logit", "probability"]
FROM_EVALUATION = [
    "id", "text", "label", "template", "form", "slot", "axis", "group", "term", "control", "symmetric", "inserted",
    "band",
]  # fmt: skip
FROM_DECISIONS = [
    "id", "predicted", "positive", "margin", "probability", "subwords", "usable", "drop_reason", "label_mapped"
]  # fmt: skip


def flatten(evaluation: pd.DataFrame, decisions: pd.DataFrame, *, scale: Scale = "logit") -> pd.DataFrame:
    """Join the rows of both records; the column `value` is the margin, or the probability where that is the scale."""
    strangers = set(evaluation["id"]) ^ set(decisions["id"])
    if strangers or evaluation["id"].duplicated().any() or decisions["id"].duplicated().any():
        named = ", ".join(sorted(map(str, strangers))[:3]) or "an id that occurs twice"
        raise ValueError(f"the decisions are not those of this evaluation set ({named}); predict it again")
    joined = evaluation[FROM_EVALUATION].merge(decisions[FROM_DECISIONS], on="id", validate="one_to_one")
    joined = joined.sort_values("id", ignore_index=True)
    joined["value"] = joined["margin" if scale == "logit" else "probability"].astype(np.float64)
    undefined = ~np.isfinite(joined["value"].to_numpy())
    if undefined.any():
        first = joined.loc[undefined, ["id", "value"]].iloc[0]
        raise SubjectError(
            f"the model answers {int(undefined.sum())} of {len(joined)} texts with no finite number (first: row "
            f"{first['id']!r}, {first['value']}); such a model cannot be audited: check its weights for NaN"
        )
    return joined
