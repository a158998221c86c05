"""Every evaluation set says what it measures, what is known against it and what it must not be used for."""

from veedor.evaluation.catalogue import CATALOGUE


def test_every_entry_is_complete():
    assert set(CATALOGUE) == {"identity-terms-en", "identity-terms-es", "bias-madlibs", "hatecheck", "user-file"}
    for name, entry in CATALOGUE.items():
        assert entry.name == name
        assert entry.construct and entry.licence and entry.source and entry.tasks
        assert entry.known_validity_issues and entry.not_valid_for


def test_no_entry_claims_to_measure_discrimination_of_people():
    assert all("discrimination_of_people" in entry.not_valid_for for entry in CATALOGUE.values())


def test_files_are_recognised_by_columns_that_tell_them_apart():
    columns = [set(entry.recognised_by) for entry in CATALOGUE.values() if entry.recognised_by]
    assert len({frozenset(names) for names in columns}) == len(columns)
