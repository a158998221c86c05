"""The sample of rows to explain, on sets whose make-up is known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from veedor.attribution.sampling import draw

SLOTS = ("adj", "noun")


def made_set(*, forms=20, groups=3, terms=10, controls=40, axes=("religion",)) -> pd.DataFrame:
    """Every form has a context a slot class; every term and control of a class stands in each of them."""
    rows = []
    for form, slot in itertools.product(range(forms), SLOTS):
        words = [
            (axis, f"g{group}", f"{axis}{group}-{slot}-{term}", False)
            for axis in axes
            for group in range(groups)
            for term in range(terms // 2)
        ]
        words += [(None, None, f"{slot}-control-{number}", True) for number in range(controls)]
        for axis, group, term, control in words:
            name = f"f{form:02}"
            rows.append((f"{name}/{slot}/{term}", f"{name}/{slot}", name, slot, axis, group, term, control))
    return pd.DataFrame(rows, columns=["id", "template", "form", "slot", "axis", "group", "term", "control"])


def drawn(rows, **options):
    sample = draw(rows, **{"budget": 10_000, "seed": 0} | options)
    return sample, rows[rows["id"].isin(sample.ids)]


def test_every_word_drawn_of_a_slot_class_stands_in_every_context_drawn_of_it():
    _, rows = drawn(made_set(), budget=1500)
    for _, own in rows.groupby("slot"):
        assert set(own.groupby("term")["template"].nunique()) == {own["template"].nunique()}


def test_twelve_contexts_six_terms_and_twenty_four_controls_are_the_floor_and_win_over_a_small_budget():
    sample, rows = drawn(made_set(), budget=100)
    assert sample.over_budget
    assert rows.groupby("slot")["template"].nunique().tolist() == [12, 12]
    assert rows[~rows["control"]].groupby("group")["term"].nunique().tolist() == [6, 6, 6]
    assert rows[rows["control"]].groupby("slot")["term"].nunique().tolist() == [24, 24]


def test_the_same_forms_are_drawn_for_every_slot_class():
    _, rows = drawn(made_set(), budget=100)
    assert rows.groupby("slot")["form"].agg(frozenset).nunique() == 1
    assert rows["form"].nunique() == 12


def test_words_grow_first_then_contexts_and_the_budget_is_kept():
    """All words of 12 contexts: 12 x 2 x (15 + 40) = 1,320 rows; a 13th context a class makes 1,430."""
    sample, rows = drawn(made_set(), budget=1429)
    assert not sample.over_budget
    assert len(rows) == 1320
    assert len(drawn(made_set(), budget=1430)[1]) == 1430


def test_everything_is_taken_when_everything_fits():
    rows = made_set()
    sample, taken = drawn(rows, budget=len(rows))
    assert len(taken) == len(rows) == sample.counts["rows"]
    assert sample.counts == {"rows": 2200, "contexts": 40, "forms": 20, "terms": 30, "controls": 80}


def test_the_order_of_rows_changes_nothing_and_the_seed_does():
    rows = made_set()
    shuffled = rows.sample(frac=1, random_state=np.random.RandomState(5))
    first = set(draw(rows, budget=100, seed=0).ids)
    assert set(draw(shuffled, budget=100, seed=0).ids) == first
    assert set(draw(rows, budget=100, seed=1).ids) != first


def test_ids_come_in_the_order_of_the_rows():
    rows = made_set()
    sample = draw(rows, budget=100, seed=0)
    assert list(sample.ids) == [identity for identity in rows["id"] if identity in set(sample.ids)]


def test_an_axis_that_only_some_contexts_hold_still_gets_twelve_of_them():
    rows = made_set(forms=40, axes=("religion", "age"))
    odd = rows["form"].str[-1].astype(int) % 2 == 1
    rows = rows[(rows["axis"] != "age") | odd]
    _, taken = drawn(rows, budget=100)
    contexts = taken[~taken["control"]].groupby(["axis", "slot"])["template"].nunique()
    assert (contexts >= 12).all()


def test_contexts_with_controls_come_before_contexts_without():
    rows = made_set(forms=24)
    rows = rows[~rows["control"] | (rows["form"] < "f12")]
    _, taken = drawn(rows, budget=100)
    assert set(taken["form"]) == {f"f{number:02}" for number in range(12)}


def test_a_set_without_forms_slots_or_controls_is_drawn_by_its_contexts():
    rows = made_set(forms=15)
    rows = rows[(rows["slot"] == "adj") & ~rows["control"]].assign(form=None, slot=None)
    sample, taken = drawn(rows, budget=50)
    assert taken["template"].nunique() == 12 and sample.counts["controls"] == 0


def test_words_that_fill_half_of_the_contexts_come_first():
    rows = made_set(terms=20)
    rare = rows["term"].str.endswith(("-0", "-1", "-2", "-3", "-4")) & (rows["form"] > "f03") & ~rows["control"]
    _, taken = drawn(rows[~rare], budget=100)
    assert not taken.loc[~taken["control"], "term"].str.endswith(("-0", "-1", "-2", "-3", "-4")).any()


@pytest.mark.parametrize("budget", [1, 5000])
def test_a_small_set_is_taken_whole(budget):
    rows = made_set(forms=3, terms=4, controls=5)
    assert len(draw(rows, budget=budget, seed=0).ids) == len(rows)
