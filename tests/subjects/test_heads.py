"""What a head decides, and the score of a target."""

import math

import pytest
import torch

from tests.subjects import families
from veedor.errors import SubjectError, UsageError
from veedor.subjects import Subject
from veedor.subjects.heads import margin, probabilities, resolve_head

LOGITS = torch.tensor([[1.0, 3.0, 0.0]])


@pytest.mark.parametrize(
    ("asked", "problem_type", "outputs", "head"),
    [
        ("auto", None, 1, "one_logit"),
        ("auto", None, 2, "softmax"),
        ("auto", "multi_label_classification", 2, "sigmoid"),
        ("auto", "single_label_classification", 5, "softmax"),
        ("sigmoid", None, 3, "sigmoid"),
        ("softmax", "multi_label_classification", 3, "softmax"),
        ("sigmoid", None, 1, "one_logit"),
    ],
)
def test_the_head_is_as_asked_or_as_the_problem_type_says(asked, problem_type, outputs, head):
    assert resolve_head(asked, problem_type=problem_type, outputs=outputs, name="x") == head


def test_three_labels_without_a_problem_type_are_asked_about():
    with pytest.raises(UsageError, match=r"3 labels.*head: softmax .one label. or head: sigmoid .several."):
        families.subject("bert", labels=3)
    assert families.subject("bert", labels=3, head="sigmoid").head == "sigmoid"


def test_a_regression_model_is_no_classifier():
    with pytest.raises(SubjectError, match="regression model"):
        families.subject("bert", labels=1, problem_type="regression")


def test_softmax_over_one_logit_is_refused():
    with pytest.raises(UsageError, match="it has one logit"):
        families.subject("bert", labels=1, head="softmax")


def test_the_margin_of_a_softmax_head_is_the_log_odds_against_the_other_labels():
    found = float(margin(LOGITS, 1, head="softmax", labels=3))
    assert found == pytest.approx(3 - math.log(math.e + 1))
    p = math.exp(3) / (math.e + math.exp(3) + 1)
    assert found == pytest.approx(math.log(p / (1 - p)))
    assert float(margin(LOGITS, 1, head="softmax", labels=3, scale="probability")) == pytest.approx(p)


def test_the_margin_of_several_labels_is_the_logit():
    assert float(margin(LOGITS, 0, head="sigmoid", labels=3)) == 1.0
    assert float(margin(LOGITS, 0, head="sigmoid", labels=3, scale="probability")) == pytest.approx(
        1 / (1 + math.exp(-1))
    )


def test_label_0_of_one_logit_with_two_labels_has_minus_the_logit():
    one = torch.tensor([[2.0]])
    assert [float(margin(one, target, head="one_logit", labels=2)) for target in (0, 1)] == [-2.0, 2.0]
    assert float(margin(one, 0, head="one_logit", labels=1)) == 2.0
    assert probabilities(one, head="one_logit", labels=2).sum().item() == pytest.approx(1.0)


def test_probabilities_are_those_of_the_head():
    assert probabilities(LOGITS, head="softmax", labels=3).sum().item() == pytest.approx(1.0)
    expected = [1 / (1 + math.exp(-value)) for value in (1.0, 3.0, 0.0)]
    assert probabilities(LOGITS, head="sigmoid", labels=3)[0].tolist() == pytest.approx(expected)


def test_an_unknown_label_names_the_nearest():
    subject = families.subject("bert", id2label={0: "fine", 1: "abusive"})
    assert subject.target_index("abusive") == 1
    with pytest.raises(UsageError, match="did you mean 'abusive'"):
        subject.target_index("abusiv")


def test_two_labels_of_one_name_are_refused():
    with pytest.raises(SubjectError, match="the label 'same' more than once"):
        families.subject("bert", id2label={0: "same", 1: "same"})


def test_logits_that_do_not_fit_the_labels_are_refused():
    made = families.model("bert", labels=4)
    made.config.id2label = {0: "a", 1: "b", 2: "c"}
    with pytest.raises(SubjectError, match=r"4 logits for 3 labels \(a, b, c\)"):
        Subject(made, families.tokenizer())
