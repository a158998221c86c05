"""Fewer rows, whole contexts, every form in turn."""

import pandas as pd
import pytest

from veedor.errors import UsageError
from veedor.evaluation.limit import limit_rows
from veedor.evaluation.rows import as_excluded, as_rows, content_digest
from veedor.records import EvaluationSet


def evaluation(sizes: dict[str, list[int]]) -> EvaluationSet:
    """A set with contexts of the given sizes in each form; half of a context's rows are inserted."""
    rows = as_rows(
        {
            "id": f"{form}-{context}-{word}",
            "text": f"word{word} in {form} {context}",
            "template": f"{form}-{context}",
            "form": form or None,
            "term": f"word{word}",
            "inserted": word % 2 == 1,
        }
        for form, contexts in sizes.items()
        for context, size in enumerate(contexts)
        for word in range(size)
    )
    return EvaluationSet(
        name="counted",
        language="en",
        licence="none",
        source="made here",
        intended_construct="none",
        digest=content_digest(rows),
        counts={"rows_read": 7},
        validation={"success": True},
        rows=rows,
        excluded=as_excluded(()),
    )


def sizes_of(found: EvaluationSet) -> dict[str, int]:
    return found.rows["template"].value_counts().to_dict()


def test_contexts_stay_whole_and_inserted_rows_count():
    found = limit_rows(evaluation({"a": [10] * 8}), 35, seed=0)
    assert set(sizes_of(found).values()) == {10}
    assert len(found.rows) == 30


def test_every_form_gives_a_context_before_any_gives_a_second():
    found = limit_rows(evaluation({"big": [5] * 100, "small": [5], "other": [5] * 3}), 30, seed=3)
    forms = found.rows.drop_duplicates("template")["form"].value_counts().to_dict()
    assert forms["small"] == 1
    assert sorted(forms.values()) == [1, 2, 3]


def test_a_context_that_does_not_fit_leaves_room_for_one_that_does():
    found = limit_rows(evaluation({"a": [50, 4, 50, 4]}), 60, seed=1)
    assert sorted(sizes_of(found).values()) == [4, 4, 50]


def test_one_context_stays_even_where_it_is_longer_than_the_limit():
    found = limit_rows(evaluation({"a": [10, 10]}), 3, seed=0)
    assert len(found.rows) == 10
    assert {note.code: note.values for note in found.notes}["limit_exceeded"] == {"limit": 3, "rows": 10}


def test_a_limit_that_was_kept_is_not_called_exceeded():
    assert [note.code for note in limit_rows(evaluation({"a": [10, 10]}), 12, seed=0).notes] == ["limited"]


def test_the_seed_decides_and_the_same_seed_decides_alike():
    whole = evaluation({"a": [2] * 40})
    first, again, other = (limit_rows(whole, 10, seed=seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first.rows, again.rows)
    assert first.digest == again.digest
    assert set(first.rows["template"]) != set(other.rows["template"])


def test_the_choice_does_not_depend_on_the_order_of_rows():
    whole = evaluation({"a": [2] * 20, "b": [2] * 20})
    turned = whole.model_copy(update={"rows": whole.rows.iloc[::-1].reset_index(drop=True)})
    chosen = [set(limit_rows(each, 12, seed=5).rows["template"]) for each in (whole, turned)]
    assert chosen[0] == chosen[1]


def test_a_set_that_fits_is_returned_as_it_is():
    whole = evaluation({"a": [5, 5]})
    assert limit_rows(whole, 10, seed=0) is whole
    assert limit_rows(whole, None, seed=0) is whole


def test_a_set_without_forms_is_cut_by_contexts():
    assert len(limit_rows(evaluation({"": [4] * 9}), 9, seed=0).rows) == 8


def test_what_was_cut_is_counted_and_said_and_must_be_validated_again():
    found = limit_rows(evaluation({"a": [10] * 8}), 35, seed=2)
    assert found.counts["rows"] == 30
    assert found.counts["rows_read"] == 7
    assert found.counts["inserted"] == 15
    assert dict(found.notes[-1].values) == {"limit": 35, "rows": 30, "contexts": 3, "of_contexts": 8, "seed": 2}
    assert found.digest == content_digest(found.rows)
    assert found.validation == {}


def test_a_limit_below_one_is_refused():
    with pytest.raises(UsageError, match="limit is 0; expected 1 or more"):
        limit_rows(evaluation({"a": [2]}), 0, seed=0)
