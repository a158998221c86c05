"""A user's file becomes an evaluation set: what its columns mean, and what is put in where it brings too little."""

import json
from pathlib import Path

import pandas as pd
import pytest

from veedor.errors import EvaluationSetError, UsageError
from veedor.evaluation.files import read_rows
from veedor.evaluation.rows import COLUMNS
from veedor.records import EvaluationSet


def written(folder: Path, content: str, name: str = "own.csv") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def refused(path: Path) -> str:
    with pytest.raises(EvaluationSetError) as caught:
        read_rows(path)
    return str(caught.value)


def codes(evaluation: EvaluationSet) -> dict[str, dict[str, object]]:
    return {note.code: dict(note.values) for note in evaluation.notes}


def reasons(evaluation: EvaluationSet) -> dict[str, str]:
    return dict(evaluation.excluded[["id", "reason"]].itertuples(index=False))


COMPLETE = """text,axis,group,term,control,label,set
The baker is a Muslim man.,religion,muslim,Muslim,no,ok,s1
The baker is a tall man.,,,tall,yes,ok,s1
The baker is a Jewish man.,religion,jewish,Jewish,,ok,s1
A seated man shouted.,,,seated,1,bad,s2
A Muslim man shouted.,religion,muslim,muslim,0,bad,s2
"""


@pytest.fixture
def complete(tmp_path: Path) -> EvaluationSet:
    return read_rows(written(tmp_path, COMPLETE))


def test_rows_have_the_columns_and_types_of_every_evaluation_set(complete):
    assert {name: str(kind) for name, kind in complete.rows.dtypes.items()} == dict(COLUMNS)


def test_a_set_with_its_own_terms_and_controls_is_used_as_it_is(complete):
    assert list(complete.rows["text"]) == [line.split(",")[0] for line in COMPLETE.splitlines()[1:]]
    assert complete.counts["inserted"] == 0
    assert list(complete.rows["control"]) == [False, True, False, True, False]
    assert list(complete.rows["template"]) == ["s1", "s1", "s1", "s2", "s2"]


def test_spans_are_found_whatever_the_case_and_quote_the_text(complete):
    spans = [text[start:end] for text, start, end in complete.rows[["text", "start", "end"]].itertuples(index=False)]
    assert spans == ["Muslim", "tall", "Jewish", "seated", "Muslim"]
    assert list(complete.rows["term"]) == ["muslim", "tall", "jewish", "seated", "muslim"]


def test_a_term_inside_another_word_is_not_in_the_text(tmp_path):
    rows = "text,axis,group,term,control\nThe other one,gender,men,he,no\nHe left,gender,men,he,no\nIt left,,,it,yes\n"
    evaluation = read_rows(written(tmp_path, rows))
    assert reasons(evaluation) == {"row-1": "term_not_in_text"}
    assert list(evaluation.rows["text"]) == ["He left", "It left"]


def test_rows_without_a_set_share_a_context_when_they_differ_in_the_term_and_its_article_only(tmp_path):
    rows = "text,axis,group,term,control\nan Asian man,e,asian,Asian,no\na tall man,,,tall,yes\na tall boy,,,tall,yes\n"
    contexts = list(read_rows(written(tmp_path, rows)).rows["template"])
    assert contexts[0] == contexts[1] != contexts[2]


def test_a_template_that_holds_several_contexts_becomes_the_form(tmp_path):
    rows = (
        "text,template,axis,group,term,control\n"
        "I met a gay man,t1,o,lgb,gay,no\nI met a tall man,t1,,,tall,yes\n"
        "I saw a gay man,t1,o,lgb,gay,no\nI saw a tall man,t1,,,tall,yes\n"
        "A gay man left,t2,o,lgb,gay,no\nA tall man left,t2,,,tall,yes\n"
    )
    found = read_rows(written(tmp_path, rows)).rows
    assert list(found["form"].fillna("none")) == ["t1"] * 4 + ["none"] * 2
    assert found["template"].nunique() == 3
    assert set(found["template"][4:]) == {"t2"}


def test_texts_alone_get_terms_of_the_axis_and_control_words(tmp_path):
    evaluation = read_rows(written(tmp_path, "text\nMy neighbour is a Muslim man.\nThe soup was cold.\n"))
    rows = evaluation.rows
    assert reasons(evaluation) == {"row-2": "no_term"}
    assert not rows["inserted"][0]
    assert set(rows["axis"].dropna()) == {"religion"}
    assert rows["control"].sum() >= 40
    assert "My neighbour is a tall man." in set(rows["text"])
    assert rows["template"].nunique() == 1
    assert "symmetry_unknown" in codes(evaluation)


def test_terms_without_controls_get_the_control_words_of_the_lexicon_and_no_further_terms(tmp_path):
    rows = "text,axis,group,term\nI met a gay man.,orientation,mine,gay\nI met a queer man.,orientation,mine,queer\n"
    found = read_rows(written(tmp_path, rows)).rows
    assert set(found.loc[~found["control"], "term"]) == {"gay", "queer"}
    assert found["control"].sum() >= 40
    assert set(found["group"].dropna()) == {"mine"}


def test_a_term_the_lexicon_does_not_know_joins_the_controls_of_its_context(tmp_path):
    rows = "text,axis,group,term\nI met a gay man.,o,mine,gay\nI met a zorgish man.,o,mine,zorgish\n"
    found = read_rows(written(tmp_path, rows)).rows.set_index("term")
    assert found.loc["zorgish", "slot"] == found.loc["gay", "slot"] == "adj"
    assert found.loc["zorgish", "template"] == found.loc["gay", "template"] == found.loc["tall", "template"]


def test_a_term_whose_grammar_nobody_knows_is_kept_without_controls_and_said_so(tmp_path):
    rows = "text,axis,group,term\nThe zorgish left.,o,mine,zorgish\nThe blipian left.,o,other,blipian\n"
    evaluation = read_rows(written(tmp_path, rows))
    assert list(evaluation.rows["slot"]) == ["given", "given"]
    assert codes(evaluation)["no_controls_put_in"] == {"rows": 2}
    assert evaluation.excluded.empty


def test_axis_and_group_are_taken_from_the_lexicon_where_the_file_leaves_them_out(tmp_path):
    rows = "text,term,control\nI met a Muslim man.,Muslim,no\nI met a tall man.,tall,yes\nI met a zorg.,zorg,no\n"
    evaluation = read_rows(written(tmp_path, rows))
    assert list(evaluation.rows["group"].fillna("none")) == ["muslim", "none"]
    assert reasons(evaluation) == {"row-3": "term_without_group"}


def test_a_slot_and_a_span_in_the_file_settle_what_the_lexicon_cannot(tmp_path):
    rows = "text,axis,group,term,slot,start,end\nThe man met a zorg man.,o,mine,zorg,adj,14,18\n"
    found = read_rows(written(tmp_path, rows)).rows
    assert list(found.loc[0, ["start", "surface", "slot"]]) == [14, "zorg", "adj"]
    assert "The man met a tall man." in set(found["text"])


def test_a_span_in_a_complete_set_says_which_of_two_places_is_meant(tmp_path):
    rows = "text,axis,group,term,control,start,end\nman to man,g,men,man,no,7,10\nman to boss,,,boss,yes,7,11\n"
    found = read_rows(written(tmp_path, rows)).rows
    assert list(found["start"]) == [7, 7]
    assert found["template"].nunique() == 1


def test_a_span_beyond_the_text_leaves_its_row_out(tmp_path):
    rows = "text,axis,group,term,control,start,end\nman,g,men,man,no,7,10\na man,g,men,man,no,,\na boss,,,boss,yes,,\n"
    assert reasons(read_rows(written(tmp_path, rows))) == {"row-1": "span_outside_text"}


def test_a_slot_that_does_not_exist_is_answered_with_those_that_do(tmp_path):
    with pytest.raises(EvaluationSetError, match="id 'row-1': unknown slot 'adjective'; did you mean 'adj'"):
        read_rows(written(tmp_path, "text,term,slot\nI met a gay man.,gay,adjective\n"))


def test_asymmetric_rows_keep_their_word_and_get_no_others(tmp_path):
    rows = "text,symmetric\nGay people call themselves gays.,no\nI met a Muslim man.,no\nI saw a Muslim man.,yes\n"
    found = read_rows(written(tmp_path, rows)).rows
    assert list(found.loc[found["symmetric"] == "no", "text"]) == ["I met a Muslim man."]
    assert set(found.loc[found["inserted"], "symmetric"]) == {"yes"}


def test_null_and_blank_texts_are_counted_apart(tmp_path):
    lines = [json.dumps({"text": text}) for text in (None, " \t ", "I met a Muslim man.")]
    evaluation = read_rows(written(tmp_path, "\n".join(lines), "own.jsonl"))
    assert reasons(evaluation) == {"row-1": "null_text", "row-2": "blank_text"}
    assert evaluation.counts["rows_read"] == 3
    assert evaluation.counts["excluded"] == 2


def test_each_reason_for_leaving_rows_out_is_said_once_with_its_count(tmp_path):
    rows = "text,term,control\nI met a gay man.,gay,\nThe zorg.,zorg,\n ,,\nnobody,,\nnobody,,\n"
    said = [dict(note.values) for note in read_rows(written(tmp_path, rows)).notes if note.code == "rows_not_swapped"]
    assert said == [
        {"rows": 1, "reason": "blank_text"},
        {"rows": 2, "reason": "no_term"},
        {"rows": 1, "reason": "term_without_group"},
    ]


def test_columns_that_mean_nothing_here_are_named_in_a_note(tmp_path):
    evaluation = read_rows(written(tmp_path, "text,author,year\nI met a Muslim man.,x,2020\n"))
    assert codes(evaluation)["columns_ignored"] == {"columns": ("author", "year")}


def test_control_characters_are_kept_and_counted(tmp_path):
    evaluation = read_rows(written(tmp_path, "text\nI met\x1b[31m a Muslim man.\x07\n"))
    assert evaluation.rows["text"][0] == "I met\x1b[31m a Muslim man.\x07"
    assert codes(evaluation)["control_characters"] == {"rows": 1}


def test_a_very_long_text_is_counted(tmp_path):
    text = "I met a Muslim man. " + "word " * 200_000
    evaluation = read_rows(written(tmp_path, f"text\n{text}\n"))
    assert codes(evaluation)["long_texts"] == {"rows": 1, "characters": len(text)}


@pytest.mark.parametrize("spelling", ["true", "TRUE", "yes", "Y", "1", "1.0", "t", "sí"])
def test_true_may_be_spelled_in_the_usual_ways(tmp_path, spelling):
    rows = f"text,axis,group,term,control\nHe left,g,men,he,no\nIt left,,,it,{spelling}\n"
    assert list(read_rows(written(tmp_path, rows)).rows["control"]) == [False, True]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("text,control\na,yes\nb,perhaps\n", "row 2: control is 'perhaps'; expected true or false"),
        ("text,symmetric\na,mostly\n", "row 1: symmetric is 'mostly'; expected true or false"),
        ("id,text\nx,a\ny,b\nx,c\n", "id 'x' stands in rows 1, 3"),
        ("id,text\nrow-2,a\n,b\n", "id 'row-2' stands in rows 1, 2"),
        ("text,start,end\na,0,1\nb,1,\n", "row 2: start is '1' and end None; expected whole numbers"),
        ("text,start,end\na,2,1\n", "row 1: start is '2' and end '1'"),
        ("text,axis\na,b/c\n", "row 1: axis is 'b/c'; expected a name without '/'"),
        ("Text,label\na,b\n", "has no column 'text'; its columns: Text, label; if 'Text' holds the texts, rename it"),
        ("sentence,label\na,b\n", "if 'sentence' holds the texts, rename it to 'text'"),
        ("tekst,label\na,b\n", "if 'tekst' holds the texts, rename it to 'text'"),
        ("n,m\na,b\n", "has no column 'text'; its columns: n, m"),
    ],
)
def test_a_value_that_may_not_stand_there_is_told_with_its_row(tmp_path, content, says):
    assert says in refused(written(tmp_path, content))


def test_a_language_without_a_lexicon_is_answered_with_those_that_have_one(tmp_path):
    with pytest.raises(UsageError, match=r"'de'.*en.*brings its own terms"):
        read_rows(written(tmp_path, "text\nEin Mann.\n"), language="de")


def test_a_set_that_brings_all_its_words_may_be_in_any_language(tmp_path):
    rows = "text,axis,group,term,control\nEin alter Mann,alter,alt,alter,nein\n".replace("nein", "no")
    evaluation = read_rows(written(tmp_path, rows + "Ein großer Mann,,,großer,yes\n"), language="de")
    assert evaluation.language == "de"
    assert evaluation.group_names == {
        "alter": {"en": "alter", "es": "alter"},
        "alter/alt": {"en": "alt", "es": "alt"},
    }


def test_groups_known_to_the_lexicon_carry_its_names(tmp_path):
    names = read_rows(written(tmp_path, "text\nI met a Muslim man.\n")).group_names
    assert names["religion/muslim"]["es"] != "muslim"


def test_the_same_file_gives_the_same_digest_and_another_order_another(tmp_path):
    lines = COMPLETE.splitlines()
    first = read_rows(written(tmp_path, COMPLETE)).digest
    assert read_rows(written(tmp_path, COMPLETE, "other name.csv")).digest == first
    swapped = "\n".join([lines[0], lines[2], lines[1], *lines[3:]])
    assert read_rows(written(tmp_path, swapped)).digest != first


def test_every_format_of_file_gives_the_same_rows(tmp_path):
    table = pd.read_csv(written(tmp_path, COMPLETE), dtype=str, keep_default_na=False)
    table.to_json(tmp_path / "own.jsonl", orient="records", lines=True)
    table.to_json(tmp_path / "own.json", orient="records")
    table.to_parquet(tmp_path / "own.parquet")
    digests = {read_rows(tmp_path / name).digest for name in ("own.csv", "own.jsonl", "own.json", "own.parquet")}
    assert len(digests) == 1


def test_a_set_survives_being_saved_and_loaded(tmp_path, complete):
    complete.save(tmp_path / "record")
    pd.testing.assert_frame_equal(EvaluationSet.load(tmp_path / "record").rows, complete.rows)
