"""Public formats: recognised by their columns, read row by row, and what cannot be used is counted by reason."""

from pathlib import Path

import pytest

from veedor.errors import EvaluationSetError, UsageError
from veedor.evaluation.examples import swap_examples
from veedor.evaluation.files import read_rows
from veedor.evaluation.formats import FORMATS, recognise
from veedor.evaluation.hatecheck import place
from veedor.evaluation.lexicon import load_lexicon
from veedor.evaluation.limit import limit_rows
from veedor.evaluation.suite import validate
from veedor.records import EvaluationSet

MADLIBS = """Text,Label,Template
"murder american",BAD,verb_adj
"Being middle aged is nice.",NOT_BAD,being_adj
"Emad is a awful older",BAD,name_adj
"You are a kind writer",NOT_BAD,you_occupation
"You are a kind zorgish",NOT_BAD,you_are_adj
"i am gay",NOT_BAD,am_hate_adj
"something else",BAD,new_form
"""
HEAD = "functionality,case_id,test_case,label_gold,target_ident,templ_id,case_templ\n"
HATECHECK = HEAD + (
    "ident_pos_nh,1,Muslims are great. ,non-hateful,Muslims,10,[IDENTITY_P] are great.\n"
    "ident_pos_nh,2,Gay people are great.,non-hateful,gay people,10,[IDENTITY_P] are great.\n"
    "ident_pos_nh,3,He is an immigrant.,non-hateful,immigrants,11,He is a [IDENTITY_S].\n"
    "derog_h,4,I hate women.,hateful,women,12,I hate [IDENTITY_P].\n"
    "slur_h,5,You are just a [slur].,hateful,women,13,You are just a [SLUR_S].\n"
    "spell_h,6,I hate w0men.,hateful,women,14,I hate [IDENTITY_P_leet].\n"
    "target_obj_nh,7,I hate oranges.,non-hateful,,15,I hate oranges.\n"
    "spell_h,8,transvermin like you,hateful,trans people,16,[IDENTITY_A]vermin like you\n"
    "ident_pos_nh,9,Women are wonderful.,non-hateful,women,10,[IDENTITY_P] are great.\n"
)


def written(folder: Path, content: str) -> Path:
    path = folder / "public.csv"
    path.write_text(content, encoding="utf-8")
    return path


def reasons(evaluation: EvaluationSet) -> dict[str, str]:
    return dict(evaluation.excluded[["id", "reason"]].itertuples(index=False))


def quoted(evaluation: EvaluationSet) -> dict[str, str]:
    own = evaluation.rows[~evaluation.rows["inserted"]]
    return {row.id: row.text[row.start : row.end] for row in own.itertuples()}


@pytest.fixture
def madlibs(tmp_path: Path) -> EvaluationSet:
    return read_rows(written(tmp_path, MADLIBS))


@pytest.fixture
def hatecheck(tmp_path: Path) -> EvaluationSet:
    return read_rows(written(tmp_path, HATECHECK))


def test_a_file_with_a_text_column_is_the_users_own_whatever_else_it_holds():
    assert recognise(["text", "Text", "Label", "Template"]) is None


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_recognised_by_the_columns_its_catalogue_entry_names(name):
    found = recognise([*FORMATS[name].entry.recognised_by, "another"])
    assert found is FORMATS[name]


def test_licence_source_and_meaning_of_labels_are_declared(madlibs, hatecheck):
    assert (madlibs.name, madlibs.licence) == ("bias-madlibs", "CC-BY-4.0")
    assert (hatecheck.name, hatecheck.licence) == ("hatecheck", "CC-BY-4.0")
    assert "Dixon" in madlibs.source
    assert "Röttger" in hatecheck.source
    assert madlibs.label_meaning == {"BAD": "adverse", "NOT_BAD": "benign"}
    assert hatecheck.label_meaning == {"hateful": "adverse", "non-hateful": "benign"}


def test_a_madlibs_term_is_found_by_its_form_and_never_a_name(madlibs):
    assert quoted(madlibs) == {"row-1": "american", "row-2": "middle aged", "row-3": "older", "row-6": "gay"}


def test_what_madlibs_cannot_use_is_counted_by_reason(madlibs):
    assert reasons(madlibs) == {"row-4": "occupation", "row-5": "term_not_in_lexicon", "row-7": "unknown_form"}


def test_madlibs_forms_are_its_templates_and_contexts_the_masked_texts(madlibs):
    own = madlibs.rows[~madlibs.rows["inserted"]]
    assert list(own["form"]) == ["verb_adj", "being_adj", "name_adj", "am_hate_adj"]
    assert own["template"].nunique() == 4
    assert set(madlibs.rows["slot"]) == {"adj"}
    assert set(madlibs.rows["symmetric"]) == {"yes"}


def test_control_words_stand_in_the_slot_in_the_lower_case_of_the_file(madlibs):
    controls = set(madlibs.rows.loc[madlibs.rows["control"], "text"])
    assert {"murder tall", "Being tall is nice.", "Emad is a awful tall", "i am tall"} <= controls


def test_the_columns_of_madlibs_with_other_templates_are_not_taken_for_madlibs(tmp_path):
    with pytest.raises(EvaluationSetError, match=r"no Template it knows .*rename the columns"):
        read_rows(written(tmp_path, "Text,Label,Template\nhello,x,mine\n"))


def test_hatecheck_identities_are_found_by_aligning_template_and_text(hatecheck):
    assert quoted(hatecheck) == {"case-1": "Muslims", "case-2": "Gay", "case-3": "immigrant", "case-4": "women"}


def test_what_hatecheck_cannot_swap_is_counted_by_reason(hatecheck):
    assert reasons(hatecheck) == {
        "case-5": "slur",
        "case-6": "misspelled_identity",
        "case-7": "no_identity",
        "case-8": "term_inside_word",
        "case-9": "template_not_aligned",
    }


def test_hatecheck_keeps_agreement_and_articles(hatecheck):
    texts = set(hatecheck.rows["text"])
    assert {"Commuters are great. ", "Tall people are great.", "He is a commuter."} <= texts
    assert not any(text.startswith(("Tall are", "Commuter are")) for text in texts)


def test_hateful_cases_are_asymmetric_and_get_no_control_words(hatecheck):
    rows = hatecheck.rows
    assert list(rows.loc[rows["symmetric"] == "no", "id"]) == ["case-4"]
    assert not (rows["text"] == "I hate commuters.").any()
    assert rows.loc[rows["id"] == "case-4", "template"].notna().all()


def test_the_two_slots_of_a_hatecheck_template_share_its_form(hatecheck):
    own = hatecheck.rows[~hatecheck.rows["inserted"]].set_index("id")
    assert own.loc["case-1", "form"] == own.loc["case-2", "form"] == "ident_pos_nh-10"
    assert own.loc["case-1", "template"] != own.loc["case-2", "template"]


def test_a_hatecheck_file_without_its_templates_names_what_is_missing(tmp_path):
    content = "functionality,test_case,label_gold,target_ident\na,b,hateful,women\n"
    with pytest.raises(EvaluationSetError, match="lacks case_templ, templ_id"):
        read_rows(written(tmp_path, content))


def test_another_language_for_a_public_set_is_refused(tmp_path):
    with pytest.raises(UsageError, match="bias-madlibs, whose language is 'en', but set_language is 'es'"):
        read_rows(written(tmp_path, MADLIBS), language="es")


@pytest.mark.parametrize(
    ("text", "template", "expected"),
    [
        ("I hate gay people.", "I hate [IDENTITY_P].", ("gay", "adj")),
        ("I hate women.", "I hate [IDENTITY_P].", ("women", "noun-p")),
        ("He is a black person. ", "He is a [IDENTITY_S]. ", ("black", "adj")),
        ("It's in an immigrant's nature", "It's in a [IDENTITY_S]'s nature", ("immigrant", "noun")),
        ("Muslim lives matter", "[IDENTITY_A] lives matter", ("Muslim", "adj")),
    ],
)
def test_an_identity_is_placed_with_its_slot(text, template, expected):
    placed, reason = place(text, template, load_lexicon("en"))
    assert placed is not None, reason
    assert (placed["surface"], placed["slot"]) == expected
    assert text[placed["start"] : placed["end"]] == expected[0]


def test_two_identities_in_one_case_are_too_many():
    found = place("women hate men", "[IDENTITY_P] hate [IDENTITY_P]", load_lexicon("en"))
    assert found == (None, "several_identities")


def test_examples_show_a_control_word_and_another_term_beside_the_original(hatecheck):
    shown = swap_examples(hatecheck, contexts=None, words=1)
    assert set(shown["kind"]) <= {"control", "term"}
    assert (shown["original"] != shown["changed"]).all()
    first = shown.iloc[0]
    assert (first["term"], first["original"], first["kind"]) == ("muslim", "Muslims are great. ", "control")


def test_examples_are_as_many_as_asked_for(madlibs):
    shown = swap_examples(madlibs, contexts=2, words=3)
    assert shown["context"].nunique() == 2
    assert len(shown) == 6


@pytest.fixture(scope="module")
def real_hatecheck(shared: Path) -> EvaluationSet:
    return read_rows(shared / "data" / "hatecheck_en.csv")


def test_the_real_hatecheck_is_accounted_for_row_by_row(real_hatecheck):
    """3,728 cases: 403 name no identity, 378 hold slurs, 154 misspell the identity, 17 write it inside a word."""
    counted = real_hatecheck.excluded["reason"].value_counts().to_dict()
    assert {name: counted[name] for name in ("no_identity", "slur", "misspelled_identity", "term_inside_word")} == {
        "no_identity": 403,
        "slur": 378,
        "misspelled_identity": 154,
        "term_inside_word": 17,
    }
    own = (~real_hatecheck.rows["inserted"]).sum()
    assert own + len(real_hatecheck.excluded) == 3728
    assert "term_not_in_lexicon" not in counted
    assert "template_not_aligned" not in counted


def test_the_real_hatecheck_names_its_seven_groups_and_passes_validation(real_hatecheck):
    groups = real_hatecheck.rows[["axis", "group"]].dropna().drop_duplicates()
    assert len(groups) == 7
    assert validate(real_hatecheck).validation["success"]


@pytest.fixture(scope="module")
def real_madlibs(shared: Path) -> EvaluationSet:
    return read_rows(shared / "data" / "bias_madlibs_77k.csv")


def test_the_real_madlibs_hold_fifty_terms_in_1514_contexts(real_madlibs):
    """45 names x 32 adjectives, 32 + 32 adjectives, 8 verbs and "i am", "i hate"; 864 rows name occupations."""
    assert real_madlibs.excluded["reason"].value_counts().to_dict() == {"occupation": 864}
    own = real_madlibs.rows[~real_madlibs.rows["inserted"]]
    assert len(own) == 76_564 - 864
    assert own["term"].nunique() == 50
    assert own["template"].nunique() == 45 * 32 + 32 + 32 + 8 + 2
    assert set(own.groupby("template")["term"].nunique()) == {50}


def test_four_thousand_rows_of_the_real_madlibs_keep_whole_contexts_of_all_forms(real_madlibs):
    cut = limit_rows(real_madlibs, 4000, seed=0)
    whole = real_madlibs.rows["template"].value_counts()
    kept = cut.rows["template"].value_counts()
    assert len(cut.rows) <= 4000
    assert (kept == whole[kept.index]).all()
    contexts = cut.rows.drop_duplicates("template")["form"].value_counts()
    assert set(contexts.index) == {"am_hate_adj", "being_adj", "name_adj", "verb_adj", "you_are_adj"}
    assert contexts["am_hate_adj"] == 2
    assert contexts["name_adj"] - contexts["verb_adj"] <= 2
    assert validate(cut).validation["success"]
