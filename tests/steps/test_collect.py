"""Collect: which set is meant, what is said when none is, and that a broken one stops the audit."""

import pytest

from steps.collect import collect, default_set
from veedor.errors import EvaluationSetError, UsageError
from veedor.settings import Settings


def test_without_a_name_the_identity_terms_of_the_models_language_are_taken():
    assert collect(Settings(limit=200), "en").name == "identity-terms-en"
    assert default_set("es") == "identity-terms-es"
    assert default_set(None) == "identity-terms-en"


def test_a_model_in_a_language_without_terms_is_told_to_name_a_set():
    with pytest.raises(UsageError, match=r"declares language 'fr'.*en, es.*name an evaluation set or a file"):
        collect(Settings(), "fr")


def test_a_misspelled_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match=r"'identity-term-en'; did you mean 'identity-terms-en'\?.*no file or folder"):
        collect(Settings(evaluation_set="identity-term-en"), None)


def test_the_name_of_a_format_is_answered_with_the_columns_of_its_file():
    with pytest.raises(UsageError, match=r"hatecheck is the format of a file.*test_case"):
        collect(Settings(evaluation_set="hatecheck"), None)


def test_another_language_than_that_of_a_built_in_set_is_refused():
    with pytest.raises(UsageError, match="set_language is 'es', but identity-terms-en is in 'en'"):
        collect(Settings(evaluation_set="identity-terms-en", set_language="es"), None)


def test_the_limit_is_kept_with_whole_contexts_and_the_result_is_validated():
    evaluation = collect(Settings(limit=1000), None)
    assert 0 < len(evaluation.rows) <= 1000
    assert evaluation.validation["success"]
    assert evaluation.notes[-1].code == "limited"


def test_a_file_is_read_in_the_language_the_settings_name(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("text,axis,group,term,control\nHola Ana,n,f,Ana,no\nHola Luz,,,Luz,yes\n", encoding="utf-8")
    evaluation = collect(Settings(evaluation_set=str(path), set_language="es"), None)
    assert evaluation.language == "es"
    assert evaluation.name == "own.csv"


def test_a_file_that_names_nobody_stops_the_audit_and_says_why(tmp_path):
    path = tmp_path / "weather.csv"
    path.write_text("text\nIt rains.\nIt snows.\n", encoding="utf-8")
    with pytest.raises(EvaluationSetError) as caught:
        collect(Settings(evaluation_set=str(path)), None)
    assert "weather.csv fails 2 critical checks: rows_exist; terms_exist" in str(caught.value)
    assert "2 rows were left out before: no_term 2" in str(caught.value)
    assert "set_language" in str(caught.value)


def test_progress_is_told_from_start_to_end():
    told: list[tuple[str, int, int]] = []
    collect(Settings(limit=100), None, lambda what, done, total: told.append((what, done, total)))
    assert told[0] == ("collect: read", 0, 2)
    assert told[-1] == ("collect: validate", 2, 2)


def test_the_same_settings_give_the_same_record(tmp_path):
    first, second = (collect(Settings(limit=500, seed=3), "en") for _ in range(2))
    assert first.save(tmp_path / "first") == second.save(tmp_path / "second")
