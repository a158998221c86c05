"""Attribution contrasts: same inference, placebo rate, agreement with the swap."""

import numpy as np
import pandas as pd
import pytest

from tests.metrics.synthetic import as_records, made_up
from veedor.metrics.agreement import sign_agreement, spearman
from veedor.metrics.attribution_contrast import Explained, measure_attribution, placebo_rate
from veedor.metrics.bias import Tables, measure_swaps
from veedor.metrics.flat import flatten
from veedor.metrics.inference import crossed_test
from veedor.metrics.material import prepare


def explained(rows: pd.DataFrame, scores: pd.Series, *, signed: bool = True) -> Explained:
    table = pd.DataFrame({"id": rows["id"], "span_score": scores})
    return Explained("made_up", "logits" if signed else "method", signed, table)


def flat_of(rows: pd.DataFrame) -> pd.DataFrame:
    evaluation, decisions = as_records(rows)
    return flatten(evaluation.rows, decisions.rows)


def contrasts(rows: pd.DataFrame, scores: pd.Series, **options: bool) -> Tables:
    return measure_attribution(flat_of(rows), explained(rows, scores, **options), seed=0)


def test_a_method_that_says_half_of_the_effect_has_half_of_the_contrast() -> None:
    rows = made_up(effects={"religion/muslim": 1.5})
    attributed = contrasts(rows, rows["margin"] / 2)
    swapped = measure_swaps(flat_of(rows))[0]
    pairs = zip(attributed.findings, swapped.findings, strict=True)
    for mine, theirs in pairs:
        assert mine.id == f"attribution/made_up/{theirs.id}"
        assert mine.estimate == pytest.approx(theirs.estimate / 2)
        assert mine.p == pytest.approx(theirs.p)
        assert mine.concordance == pytest.approx(1.0) and mine.sign_agreement == 1.0


def test_a_method_that_sees_it_the_other_way_round_disagrees_with_the_swap() -> None:
    rows = made_up(effects={"religion/muslim": 1.5})
    found = contrasts(rows, -rows["margin"]).findings[0]
    assert found.concordance == pytest.approx(-1.0) and found.sign_agreement == 0.0


def test_a_method_without_sign_is_held_against_the_size_of_the_swap_and_has_no_direction() -> None:
    rows = made_up(effects={"religion/muslim": -3.0, "religion/jewish": 1.0})
    size = (rows["margin"] - rows.groupby("template")["margin"].transform("mean")).abs()
    found = contrasts(rows, size, signed=False).findings[0]
    assert found.sign_agreement is None and found.concordance > 0.7 and found.units == "method"


def test_only_the_explained_rows_count_and_scores_that_are_missing_are_counted() -> None:
    rows = made_up()
    sample = rows[rows["template"] < "c012"]
    scores = sample["margin"].mask(sample["id"] == "c003|jewish 2")
    found = measure_attribution(flat_of(rows), explained(sample, scores), seed=0).findings
    jewish = next(one for one in found if one.id == "attribution/made_up/group/religion/jewish")
    assert (jewish.n_templates, jewish.n_rows, jewish.dropped) == (12, 71, {"no_span_score": 1})


def control_material(rows: pd.DataFrame, values: np.ndarray):
    return prepare(flat_of(rows), values, "contexts")


def test_the_placebo_rate_is_the_share_of_random_splits_that_the_crossed_test_rejects() -> None:
    """The same 200 splits, one crossed test each."""
    rows = made_up(controls=24, noise=0.3).sort_values("id", ignore_index=True)
    material = control_material(rows, rows["margin"].to_numpy())
    controls = rows[rows["control"]]
    names = sorted(controls["term"].unique())
    generator = np.random.default_rng(7)
    order = generator.permuted(np.tile(np.arange(24), (200, 1)), axis=1)
    alarms = 0
    for split in order < 12:
        side = dict(zip(names, np.where(split, "a", "b"), strict=True))
        result = crossed_test(
            controls["margin"], controls["template"], controls["term"], controls["term"].map(side), of="a", against="b"
        )
        alarms += result.p is not None and result.p < 0.05
    assert placebo_rate(material, seed=7) == alarms / 200


def test_the_placebo_rate_of_noise_is_near_its_level_and_repeats() -> None:
    rows = made_up(controls=40)
    noise = np.random.default_rng(2).normal(size=len(rows))
    rate = placebo_rate(control_material(rows, noise), seed=1)
    assert rate is not None and rate <= 0.1
    assert placebo_rate(control_material(rows, noise), seed=1) == rate


def test_without_controls_there_is_no_placebo_rate() -> None:
    rows = made_up()
    rows = rows[~rows["control"]]
    assert placebo_rate(control_material(rows, rows["margin"].to_numpy()), seed=0) is None


def test_rank_correlation_agrees_with_scipy_on_ties() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, 80), rng.integers(0, 6, 80)
    assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic)


def test_agreement_of_too_little_is_none_and_nan_is_refused() -> None:
    assert spearman([1, 2], [1, 2]) is None and sign_agreement([0.0], [1.0]) is None
    with pytest.raises(ValueError, match="NaN"):
        spearman([1.0, float("nan"), 2.0], [1.0, 2.0, 3.0])
