"""What validation says of a set, right and wrong, and what it never gives away."""

import json
import time

import pandas as pd
import pytest

from veedor.evaluation import suite
from veedor.evaluation.rows import as_rows
from veedor.evaluation.suite import CHECKS, check_rows, failing, validate
from veedor.evaluation.templates import build_identity_terms

TERMS = tuple((group, f"{group}term{number}") for group in ("north", "south") for number in range(6))
CONTROLS = tuple(f"word{number}" for number in range(24))


def crossed(contexts: int = 12) -> pd.DataFrame:
    """A complete set: every term and every control word in every context."""
    words = [("place", group, term) for group, term in TERMS] + [(None, None, word) for word in CONTROLS]
    return as_rows(
        {
            "id": f"{context}-{word}",
            "text": f"Here stood {word} once, {context}.",
            "label": "neutral",
            "template": f"context-{context}",
            "slot": "noun",
            "axis": axis,
            "group": group,
            "term": word,
            "start": 11,
            "end": 11 + len(word),
            "control": axis is None,
            "set": f"context-{context}",
            "symmetric": "yes",
            "surface": word,
        }
        for context in range(contexts)
        for axis, group, word in words
    )


def outcome(rows: pd.DataFrame) -> dict[str, dict[str, object]]:
    return {str(check["id"]): check for check in check_rows(rows)["checks"]}


def failed(rows: pd.DataFrame) -> dict[str, str]:
    return {name: str(check["severity"]) for name, check in outcome(rows).items() if not check["success"]}


def test_a_complete_set_passes_every_check():
    assert failed(crossed()) == {}


def test_the_identity_terms_pass_every_critical_check():
    validated = validate(build_identity_terms("en"))
    assert validated.validation["success"]
    assert failing(validated.validation) == []


def test_an_empty_set_fails_although_every_expectation_about_values_passes():
    result = check_rows(crossed().head(0))
    assert not result["success"]
    assert [check["id"] for check in failing(result)] == ["rows_exist", "terms_exist"]


def test_a_set_of_control_words_only_has_nothing_to_test():
    rows = crossed()
    assert failed(rows[rows["control"]])["terms_exist"] == "critical"


def broken(column: str, value: object, row: int = 3) -> pd.DataFrame:
    rows = crossed()
    rows.loc[row, column] = value
    return rows


@pytest.mark.parametrize(
    ("column", "value", "check"),
    [
        ("id", None, "id_present"),
        ("text", None, "text_present"),
        ("text", " \n", "text_not_blank"),
        ("template", None, "template_present"),
        ("symmetric", "perhaps", "symmetric_known"),
        ("group", None, "term_has_group"),
        ("start", 10, "term_in_text"),
        ("end", 10_000, "term_in_text"),
        ("surface", "another", "term_in_text"),
    ],
)
def test_one_wrong_value_fails_a_critical_check_that_counts_and_names_its_row(column, value, check):
    found = outcome(broken(column, value))[check]
    assert (found["success"], found["severity"], found["unexpected_count"]) == (False, "critical", 1)
    assert found["unexpected_ids"] == (["(no id)"] if column == "id" else ["0-northterm3"])


def test_a_span_that_cuts_a_word_is_not_at_word_boundaries():
    rows = broken("end", 15)
    rows.loc[3, "surface"] = rows.loc[3, "text"][11:15]
    found = outcome(rows)
    assert found["term_in_text"]["success"]
    assert found["term_at_word_boundaries"]["unexpected_ids"] == ["0-northterm3"]


def test_a_control_row_with_a_group_is_critical():
    rows = crossed()
    rows.loc[20, ["axis", "group"]] = ["place", "north"]
    assert failed(rows) == {"control_has_no_group": "critical"}


def test_two_rows_with_one_id_are_critical():
    assert failed(broken("id", "0-northterm2")) == {"id_unique": "critical"}


def test_a_missing_column_is_named_and_what_needs_it_counts_as_failed():
    found = outcome(crossed().drop(columns=["id"]))
    assert (found["columns"]["success"], found["columns"]["observed"]) == (False, "id")
    assert (found["id_present"]["success"], found["id_present"]["observed"]) == (False, "exception")


def test_an_exception_inside_an_expectation_is_a_failure(monkeypatch):
    absent = suite.Check("absent", "rows", "ExpectColumnValuesToNotBeNull", "critical", {"column": "nowhere"})
    monkeypatch.setattr(suite, "CHECKS", (absent,))
    result = check_rows(crossed())
    assert not result["success"]
    assert result["checks"][0]["observed"] == "exception"


def test_the_same_text_twice_in_a_context_is_a_warning():
    rows = crossed()
    twice = pd.concat([rows, rows.head(1).assign(id="again")], ignore_index=True)
    assert failed(twice) == {"texts_distinct_in_context": "warning"}


def test_a_set_without_a_control_and_one_without_a_term_are_warnings_named_by_their_first_row():
    rows = crossed()
    without_controls = (rows["template"] == "context-2") & rows["control"]
    without_terms = (rows["template"] == "context-5") & ~rows["control"]
    found = outcome(rows[~without_controls & ~without_terms])
    assert found["set_has_control"]["unexpected_ids"] == ["2-northterm0"]
    assert found["set_has_term"]["unexpected_ids"] == ["5-word0"]
    assert found["controls_in_context"]["unexpected_ids"] == ["2-northterm0"]
    assert found["terms_in_context"]["unexpected_ids"] == ["5-word0"]
    assert {found[name]["severity"] for name in ("set_has_control", "set_has_term")} == {"warning"}


def test_asymmetric_rows_need_no_controls():
    rows = crossed()
    asymmetric = rows["template"] == "context-2"
    rows.loc[asymmetric, "symmetric"] = "no"
    rest = failed(rows[~(asymmetric & rows["control"])])
    assert rest == {"contexts_of_group": "warning"}


def test_a_group_of_five_terms_is_a_warning_that_names_the_group():
    rows = crossed()
    found = outcome(rows[rows["term"] != "southterm5"])
    assert found["terms_in_group"]["unexpected_ids"] == ["place/south"]
    assert found["terms_in_group"]["cell"] == "group"
    assert failed(rows[rows["term"] != "southterm5"]) == {"terms_in_group": "warning"}


def test_a_group_whose_terms_share_no_context_is_badly_covered():
    rows = crossed()
    numbers = rows["template"].str.removeprefix("context-").astype(int) % 6
    own = rows["term"] == "southterm" + numbers.astype(str)
    assert failed(rows[(rows["group"] != "south") | own]) == {"coverage_of_group": "warning"}


def test_rows_of_a_set_that_differ_in_more_than_the_term_are_a_warning():
    rows = broken("text", "Here stood northterm3 twice, 0.")
    assert failed(rows) == {"alike_in_context": "warning"}


def test_a_set_with_two_labels_is_a_warning():
    assert failed(broken("label", "negative")) == {"one_label_in_set": "warning"}


def test_no_text_and_nothing_undefined_enters_the_result():
    rows = broken("id", None)
    rows.loc[5, "text"] = "A secret that must not leave the file"
    rows.loc[6, "text"] = None
    result = json.dumps(check_rows(rows), allow_nan=False)
    assert "secret" not in result
    assert "Here stood" not in result


def test_at_most_twenty_rows_are_named():
    rows = crossed()
    rows["start"] = -1
    found = outcome(rows)["term_in_text"]
    assert found["unexpected_count"] == len(rows) == 432
    assert len(found["unexpected_ids"]) == 20


def test_the_result_repeats_byte_for_byte():
    rows = broken("start", 3)
    assert json.dumps(check_rows(rows)) == json.dumps(check_rows(rows))


def test_the_given_rows_are_left_as_they_were():
    rows = crossed()
    before = rows.copy(deep=True)
    check_rows(rows)
    pd.testing.assert_frame_equal(rows, before)


def test_every_check_has_a_name_of_its_own_and_its_class_exists():
    import great_expectations.expectations as gxe

    assert len({check.id for check in CHECKS}) == len(CHECKS)
    assert all(hasattr(gxe, check.kind) for check in CHECKS)


def test_validation_prints_nothing(capfd):
    check_rows(crossed())
    assert capfd.readouterr() == ("", "")


def test_ten_thousand_rows_take_less_than_three_seconds():
    check_rows(crossed(1))
    rows = crossed(280)
    assert len(rows) > 10_000
    started = time.perf_counter()
    check_rows(rows)
    assert time.perf_counter() - started < 3
