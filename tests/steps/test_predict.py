"""The step asks the model about every row and says which rows can be compared, and why the others cannot."""

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import BertForSequenceClassification

from steps.predict import decide, predict
from veedor.errors import SubjectError, UsageError
from veedor.records import Decisions, EvaluationSet
from veedor.settings import Settings, build
from veedor.subjects import Subject
from veedor.subjects.tiny import untrained, whole_word_tokenizer

KNOWN = ["the muslim tenant sings .", "the tall tenant sings .", "the quiet tenant sings .", "a b c d e f g h"]
COLUMNS = [
    "id", "predicted", "positive", "margin", "probability", "logits", "probabilities", "tokens", "subwords",
    "truncated", "usable", "drop_reason", "label_mapped",
]  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


def row(identity: str, text: str, term: str | None, **values) -> dict[str, object]:
    start = text.lower().index(term) if term else -1
    made = {
        "id": identity,
        "text": text,
        "label": None,
        "template": "t",
        "form": None,
        "slot": "adj",
        "axis": "religion",
        "group": "muslim",
        "term": term,
        "start": start,
        "end": start + len(term) if term else -1,
        "control": False,
        "set": None,
        "symmetric": "unknown",
        "inserted": False,
        "surface": term,
        "band": None,
    }
    return made | values


def control(identity: str, text: str, term: str, **values) -> dict[str, object]:
    return row(identity, text, term, axis=None, group=None, control=True, **values)


def evaluation(*rows: dict[str, object]) -> EvaluationSet:
    return EvaluationSet(
        name="made",
        language="en",
        licence="none",
        source="test",
        intended_construct="none",
        digest="0",
        rows=pd.DataFrame(list(rows)),
        excluded=pd.DataFrame({"id": [], "text": [], "reason": [], "detail": []}),
    )


def made(labels=("fine", "abusive"), *, window: int = 16, head: str = "auto", **config) -> Subject:
    tokenizer = whole_word_tokenizer(KNOWN, window=window)
    model = untrained(tokenizer, labels if len(labels) > 1 else (*labels, "unused"), seed=4)
    if len(labels) == 1:
        model.config.id2label = {0: labels[0]}
        model.classifier = torch.nn.Linear(model.config.hidden_size, 1)
    for name, value in {"problem_type": None, **config}.items():
        setattr(model.config, name, value)
    return Subject(model, tokenizer, head=head)


def step(rows: EvaluationSet, subject: Subject, **settings) -> Decisions:
    return predict(rows, subject, build(Settings, settings, "test"))


def notes(found: Decisions) -> dict[str, dict[str, object]]:
    return {note.code: note.values for note in found.notes}


PLAIN = evaluation(
    row("a", "The Muslim tenant sings.", "muslim"),
    control("b", "The tall tenant sings.", "tall"),
    control("c", "The quiet tenant sings.", "quiet"),
    row("d", "The tenant sings.", None, axis=None, group=None),
)


def test_every_row_is_answered_in_the_order_of_the_set_as_the_model_alone_does():
    subject = made()
    found = step(PLAIN, subject).rows
    assert list(found.columns) == COLUMNS and list(found["id"]) == ["a", "b", "c", "d"]
    for text, answer in zip(PLAIN.rows["text"], found.itertuples(), strict=True):
        with torch.no_grad():
            logits = subject.model(**subject.tokenizer(text, return_tensors="pt")).logits[0].double()
        assert answer.logits.tolist() == pytest.approx(logits.tolist(), abs=1e-6)
        assert answer.margin == pytest.approx(float(logits[1] - logits[0]), abs=1e-6)
        assert answer.probability == pytest.approx(float(logits.softmax(0)[1]), abs=1e-6)
        assert answer.positive == (answer.margin > 0) == (answer.predicted == "abusive")


def test_lengths_sub_words_and_use_are_counted():
    found = step(PLAIN, made())
    assert found.rows["tokens"].tolist() == [7, 7, 7, 6]  # [CLS] the muslim tenant sings . [SEP]
    assert found.rows["subwords"].tolist() == [1, 1, 1, 0]
    assert found.rows["usable"].tolist() == [True, True, True, False]
    assert found.rows["drop_reason"].tolist() == [""] * 4
    assert found.counts == {
        "rows": 4, "truncated": 0, "usable": 3, "term_cut": 0, "asymmetric": 0, "same_tokens": 0, "labelled": 0,
        "positive": int(found.rows["positive"].sum()),
    }  # fmt: skip


def test_the_order_of_rows_changes_no_bit_of_an_answer():
    rows = [row(str(n), f"The muslim tenant {'a ' * n}sings.", "muslim") for n in range(7)]
    forwards = step(evaluation(*rows), made(), batch_size=3).rows.set_index("id")
    backwards = step(evaluation(*rows[::-1]), made(), batch_size=3).rows.set_index("id")
    assert forwards["margin"].to_dict() == backwards["margin"].to_dict()


def test_the_record_survives_its_folder_and_repeats_byte_for_byte(tmp_path):
    digests = [step(PLAIN, made()).save(tmp_path / name) for name in ("first", "second")]
    assert digests[0] == digests[1]
    again = Decisions.load(tmp_path / "first")
    assert again.rows["margin"].dtype == np.float64 and again.rows["label_mapped"].tolist() == [None] * 4


def test_progress_counts_rows_to_the_end():
    calls = []
    predict(PLAIN, made(), build(Settings, {"batch_size": 3}, "test"), lambda *call: calls.append(call))
    assert calls == [("predict", 3, 4), ("predict", 4, 4)]


# The target


def test_the_target_is_the_one_that_is_named():
    found = step(PLAIN, made(), target="fine")
    assert (found.target, found.target_source, "target_assumed" in notes(found)) == ("fine", "named", False)
    assert found.rows["margin"].tolist() == pytest.approx((-step(PLAIN, made()).rows["margin"]).tolist())


def test_the_target_is_else_that_of_the_policy():
    found = step(PLAIN, made(), policy={"target": "fine"})
    assert (found.target, found.target_source) == ("fine", "policy")


def test_the_target_is_else_label_1_of_two_and_that_is_said():
    found = step(PLAIN, made())
    assert (found.target, found.target_source) == ("abusive", "label_1")
    assert notes(found)["target_assumed"] == {"target": "abusive", "other": "fine"}


def test_one_label_alone_is_the_target():
    found = step(PLAIN, made(("toxic",)))
    assert (found.target, found.target_source, found.subject.head) == ("toxic", "only", "one_logit")
    assert found.score_function == "logit of the target"


def test_without_a_target_several_labels_are_listed():
    with pytest.raises(UsageError, match=r"3 labels; name the one to judge.*a, b, c"):
        step(PLAIN, made(("a", "b", "c"), head="softmax"))


def test_two_targets_that_differ_are_an_error():
    with pytest.raises(UsageError, match="target is 'fine', but the policy judges 'abusive'"):
        step(PLAIN, made(), target="fine", policy={"target": "abusive"})


def test_an_unknown_target_names_the_nearest_label():
    with pytest.raises(UsageError, match="did you mean 'abusive'"):
        step(PLAIN, made(), target="abusiv")


# Decisions


def test_a_softmax_head_chooses_the_largest():
    found = decide(np.array([[0.2, 0.45, 0.35], [0.5, 0.2, 0.3]]), head="softmax", target=2, threshold=0.5)
    assert found.tolist() == [[False, True, False], [True, False, False]]


def test_another_threshold_is_that_of_the_target():
    found = decide(np.array([[0.2, 0.45, 0.35], [0.5, 0.2, 0.3]]), head="softmax", target=2, threshold=0.32)
    assert found.tolist() == [[False, False, True], [True, False, False]]
    high = decide(np.array([[0.3, 0.7]]), head="softmax", target=1, threshold=0.8)
    assert high.tolist() == [[True, False]]


def test_several_labels_are_those_at_or_above_the_threshold():
    found = step(PLAIN, made(("rude", "threat", "spam"), head="sigmoid"), target="threat", threshold=0.5)
    for answer in found.rows.itertuples():
        chosen = [label for label, p in zip(("rude", "threat", "spam"), answer.probabilities, strict=True) if p >= 0.5]
        assert answer.predicted == "|".join(chosen) and answer.positive == ("threat" in chosen)
        assert answer.margin == pytest.approx(answer.logits[1])


def test_one_logit_below_the_threshold_chooses_nothing():
    found = step(PLAIN, made(("toxic",)), threshold=0.99).rows
    assert found["predicted"].tolist() == [""] * 4 and not found["positive"].any()


def test_the_score_function_is_named_by_scale_and_head():
    assert step(PLAIN, made()).score_function == "log-odds of the target"
    probability = {"scale": "probability", "margin": 0.05}
    assert step(PLAIN, made(), policy=probability).score_function == "probability of the target"


def test_answers_that_are_no_numbers_are_refused():
    subject = made()
    with torch.no_grad():
        subject.model.classifier.bias[0] = torch.nan
    with pytest.raises(SubjectError, match="4 of 4 texts with logits that are no finite numbers"):
        step(PLAIN, subject)


# Labels

LABELLED = evaluation(
    row("a", "The Muslim tenant sings.", "muslim", label="Abusive"),
    control("b", "The tall tenant sings.", "tall", label="other"),
    control("c", "The quiet tenant sings.", "quiet", label=None),
)


def test_a_label_of_the_same_name_is_the_models_whatever_its_case_and_others_are_said_to_be_left_out():
    found = step(LABELLED, made())
    assert found.rows["label_mapped"].tolist() == ["abusive", None, None]
    assert found.label_map == {"Abusive": "abusive"} and found.counts["labelled"] == 1
    assert notes(found)["labels_unmapped"] == {"labels": ("other",), "model_labels": ("fine", "abusive")}
    assert found.rows["usable"].all()


def test_the_policy_joins_labels():
    found = step(LABELLED, made(), policy={"label_map": {"other": "fine", "elsewhere": "fine"}})
    assert found.rows["label_mapped"].tolist() == ["abusive", "fine", None]
    assert "labels_unmapped" not in notes(found)


def test_a_label_can_be_none_of_those_of_a_head_that_may_choose_none():
    policy = {"label_map": {"Abusive": "toxic", "other": ""}}
    assert step(LABELLED, made(("toxic",)), policy=policy).rows["label_mapped"].tolist() == ["toxic", "", None]
    with pytest.raises(UsageError, match="label_map: other: unknown label ''"):
        step(LABELLED, made(), policy={"label_map": {"other": ""}})


def test_a_label_map_to_no_label_of_the_model_names_the_nearest():
    with pytest.raises(UsageError, match="label_map: other: unknown label 'fin'; did you mean 'fine'"):
        step(LABELLED, made(), policy={"label_map": {"other": "fin"}})


# Rows that cannot be compared


def test_a_term_beyond_the_window_is_cut_and_counted():
    long = "a " * 30
    rows = evaluation(
        row("whole", f"The muslim tenant {long}", "muslim"),
        row("cut", f"{long} muslim", "muslim"),
        control("short", "The tall tenant sings.", "tall"),
    )
    found = step(rows, made())
    assert found.rows["drop_reason"].tolist() == ["", "term_cut", ""]
    assert found.rows["truncated"].tolist() == [True, True, False]
    assert found.rows["usable"].tolist() == [True, False, True]
    assert notes(found)["truncated"] == {"rows": 2, "window": 16}
    assert notes(found)["term_cut"] == {"rows": 1}


def test_asymmetric_rows_are_left_out_of_comparisons():
    rows = evaluation(
        row("a", "The Muslim tenant sings.", "muslim", symmetric="no"),
        control("b", "The tall tenant sings.", "tall", symmetric="yes"),
    )
    found = step(rows, made())
    assert found.rows["drop_reason"].tolist() == ["asymmetric", ""]
    assert notes(found)["asymmetric"] == {"rows": 1}


def test_words_that_become_the_same_tokens_are_left_out_with_all_their_like():
    """Both unknown words are [UNK]; in another context one of them stands alone and stays."""
    rows = evaluation(
        row("a", "The hijabi tenant sings.", "hijabi"),
        control("b", "The punctual tenant sings.", "punctual"),
        control("c", "The tall tenant sings.", "tall"),
        row("d", "A hijabi tenant sings.", "hijabi", template="u"),
        row("e", "The shia tenant sings.", "shia", set="apart"),
    )
    found = step(rows, made())
    assert found.rows["drop_reason"].tolist() == ["same_tokens", "same_tokens", "", "", ""]
    assert notes(found)["same_tokens"] == {"rows": 2, "terms": ("hijabi", "punctual")}


def test_the_same_word_twice_is_one_word():
    """Written in two cases, or named by two groups."""
    rows = evaluation(
        row("a", "The Muslim tenant sings.", "muslim", surface="Muslim"),
        row("b", "The muslim tenant sings.", "muslim"),
        row("c", "The muslim tenant sings.", "muslim", axis="ethnicity") | {"term": "muslim (people)"},
    )
    found = step(rows, made())
    assert found.rows["drop_reason"].tolist() == [""] * 3


def test_half_precision_is_said():
    tokenizer = whole_word_tokenizer(KNOWN)
    model: BertForSequenceClassification = untrained(tokenizer, ("fine", "abusive"), seed=4).half()
    assert notes(step(PLAIN, Subject(model, tokenizer)))["audited_in_float32"] == {"stored": "float16"}


def test_a_set_without_rows_has_no_answers():
    empty = evaluation(row("a", "x", None)).model_copy(update={"rows": PLAIN.rows.iloc[:0]})
    found = step(empty, made())
    assert len(found.rows) == 0 and list(found.rows.columns) == COLUMNS


def test_a_real_classifier_answers_a_real_set(shared):
    subject = Subject.load(shared / "models" / "abuse-minilm")
    found = step(PLAIN, subject)
    assert notes(found)["audited_in_float32"] == {"stored": "float16"}
    assert found.rows["predicted"].isin(["acceptable", "abusive"]).all() and found.counts["usable"] == 3


def test_labels_that_hold_controls_are_listed_with_escapes():
    with pytest.raises(UsageError) as told:
        step(PLAIN, made(("fine", "b\x1b[31mad", "two\nlines"), head="softmax"))
    assert r"'b\x1b[31mad', 'two\nlines'" in str(told.value) and "\x1b" not in str(told.value)
