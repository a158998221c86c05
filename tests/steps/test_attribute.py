"""The step: a sample of usable rows, every method that the model allows, and words for what was left out."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from steps.attribute import attribute_sample
from veedor.errors import UsageError
from veedor.records import Attributions, Decisions, EvaluationSet
from veedor.settings import Settings, build
from veedor.subjects import Subject
from veedor.subjects.tiny import untrained, whole_word_tokenizer

FRAMES = ("The {} tenant sings.", "Nobody in town trusts the {} sailor", "A commuter is {}.", "Every {} neighbour left")
GROUPS = {"religion/muslim": ("muslim", "hijabi", "shia"), "age/older": ("elderly", "aged", "retired")}
CONTROLS = ("tall", "quiet", "punctual", "tired", "busy")


def made_rows() -> pd.DataFrame:
    words = [(*group.split("/"), term, False) for group, terms in GROUPS.items() for term in terms]
    words += [(None, None, control, True) for control in CONTROLS]
    rows = []
    for (number, frame), (axis, group, term, control) in itertools.product(enumerate(FRAMES), words):
        start = frame.index("{")
        rows.append(
            {
                "id": f"{number}-{term}",
                "text": frame.format(term),
                "label": None,
                "template": f"t{number}",
                "form": None,
                "slot": "adj",
                "axis": axis,
                "group": group,
                "term": term,
                "start": start,
                "end": start + len(term),
                "control": control,
                "set": f"t{number}",
                "symmetric": "yes",
                "inserted": False,
                "surface": term,
                "band": None,
            }
        )
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def evaluation() -> EvaluationSet:
    return EvaluationSet(
        name="made",
        language="en",
        licence="none",
        source="test",
        intended_construct="none",
        digest="0",
        rows=made_rows(),
        excluded=pd.DataFrame({"id": [], "text": [], "reason": [], "detail": []}),
    )


@pytest.fixture(scope="module")
def subject(evaluation) -> Subject:
    torch.set_num_threads(1)
    tokenizer = whole_word_tokenizer(evaluation.rows["text"])
    return Subject(untrained(tokenizer, ("fine", "flagged"), seed=1), tokenizer)


@pytest.fixture
def decisions(evaluation, subject) -> Decisions:
    rows = evaluation.rows
    return Decisions(
        subject=subject.card,
        target="flagged",
        target_source="named",
        score_function="log-odds of the target",
        threshold=0.5,
        rows=pd.DataFrame({"id": rows["id"], "usable": True}),
    )


def step(evaluation, decisions, subject, **values) -> Attributions:
    return attribute_sample(evaluation, decisions, subject, build(Settings, values, "test"))


def codes(found: Attributions) -> list[str]:
    return [note.code for note in found.notes]


def test_every_method_explains_every_row_of_a_small_set(evaluation, decisions, subject):
    methods = ("rollout", "integrated_gradients", "occlusion", "gradient", "input_x_gradient", "attention", "random")
    found = step(evaluation, decisions, subject, methods=methods)
    assert found.rows.groupby("method")["id"].nunique().to_dict() == dict.fromkeys(methods, 44)
    assert found.sample == {"rows": 44, "contexts": 4, "forms": 4, "terms": 6, "controls": 5}
    assert list(found.methods) == list(methods) and found.refused == {}


def test_a_terms_span_score_is_that_of_its_own_token(evaluation, decisions, subject):
    """Every word is one token, so the span's score is the token's; the full stop beside it is not the term's."""
    found = step(evaluation, decisions, subject, methods=("occlusion", "integrated_gradients"))
    spans = evaluation.rows.set_index("id")
    for row in found.rows.itertuples():
        at = list(row.token_starts).index(spans.loc[row.id, "start"])
        assert row.tokens[at] == spans.loc[row.id, "term"]
        assert row.span_score == pytest.approx(row.scores[at])


def test_occlusion_of_a_term_before_a_full_stop_masks_the_term_alone(evaluation, decisions, subject):
    found = step(evaluation, decisions, subject, methods=("occlusion",)).rows.set_index("id")
    ids = subject.tokenizer("A commuter is muslim.")["input_ids"]
    masked = [subject.tokenizer.mask_token_id if at == 4 else index for at, index in enumerate(ids)]
    with torch.no_grad():
        logits = subject.model(torch.tensor([ids, masked])).logits.double()
    margin = logits[:, 1] - logits[:, 0]
    assert found.loc["2-muslim", "span_score"] == pytest.approx(float(margin[0] - margin[1]), abs=1e-6)


def test_rows_that_are_not_usable_are_not_explained(evaluation, decisions, subject):
    decisions.rows.loc[decisions.rows["id"].str.startswith("0-"), "usable"] = False
    found = step(evaluation, decisions, subject, methods=("random",))
    assert not found.rows["id"].str.startswith("0-").any()
    assert found.sample["contexts"] == 3


def test_rows_without_a_term_are_not_explained(evaluation, decisions, subject):
    rows = evaluation.rows.copy()
    rows.loc[rows["id"] == "0-muslim", ["term", "axis", "group", "start", "end"]] = [None, None, None, -1, -1]
    found = step(evaluation.model_copy(update={"rows": rows}), decisions, subject, methods=("random",))
    assert "0-muslim" not in set(found.rows["id"])


def test_no_rows_asked_for_switch_attribution_off_and_say_so(evaluation, decisions, subject):
    found = step(evaluation, decisions, subject, attribution_rows=0)
    assert len(found.rows) == 0 and codes(found) == ["attribution_off"]


def test_floors_win_over_a_budget_and_a_note_says_so(evaluation, decisions, subject):
    found = step(evaluation, decisions, subject, methods=("random",), attribution_rows=10)
    assert len(found.rows) == 44 and "attribution_floors" in codes(found)


def test_nothing_usable_is_said_and_not_an_error(evaluation, decisions, subject):
    decisions.rows["usable"] = False
    found = step(evaluation, decisions, subject)
    assert len(found.rows) == 0 and codes(found) == ["attribution_nothing_to_explain"]


def test_a_method_that_the_model_does_not_allow_is_refused_and_the_others_run(evaluation, decisions):
    from transformers import BartConfig, BartForSequenceClassification

    tokenizer = whole_word_tokenizer(evaluation.rows["text"])
    config = BartConfig(
        vocab_size=len(tokenizer),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=64,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=3,
        forced_eos_token_id=3,
        id2label={0: "fine", 1: "flagged"},
        problem_type="single_label_classification",
    )
    torch.manual_seed(0)
    bart = Subject(BartForSequenceClassification(config).eval(), tokenizer)
    found = step(evaluation, decisions, bart, methods=("rollout", "occlusion"))
    assert found.refused == {"rollout": "encoder_decoder"}
    assert set(found.rows["method"]) == {"occlusion"} and "method_refused" in codes(found)


def test_an_unknown_method_is_an_error_before_any_work(evaluation, decisions, subject):
    with pytest.raises(UsageError, match="did you mean 'occlusion'"):
        step(evaluation, decisions, subject, methods=("oclusion",))


def test_the_order_of_rows_changes_nothing(evaluation, decisions, subject):
    shuffled = evaluation.rows.sample(frac=1, random_state=np.random.RandomState(0))
    other = evaluation.model_copy(update={"rows": shuffled})
    settings = {"methods": ("random", "rollout"), "attribution_rows": 20}
    first, second = (step(made, decisions, subject, **settings).rows for made in (evaluation, other))
    joined = first.merge(second, on=["id", "method"])
    assert len(joined) == len(first) == len(second)
    for one, two in zip(joined["scores_x"], joined["scores_y"], strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_record_survives_its_folder_and_repeats_byte_for_byte(evaluation, decisions, subject, tmp_path):
    digests = [step(evaluation, decisions, subject).save(tmp_path / name, made_from={}) for name in ("first", "second")]
    again = Attributions.load(tmp_path / "first")
    assert digests[0] == digests[1]
    assert again.rows["scores"].iloc[0].dtype == np.float64
    assert again.methods["occlusion"]["options"] == {"operator": "mask", "unit": "word; the term as one phrase"}
    assert again.methods["rollout"]["targeted"] is False


def test_progress_is_told_for_each_method(evaluation, decisions, subject):
    calls = []
    settings = build(Settings, {"methods": ("rollout", "occlusion")}, "test")
    attribute_sample(evaluation, decisions, subject, settings, lambda *call: calls.append(call))
    assert {name for name, _, _ in calls} == {"attribute: rollout", "attribute: occlusion"}
    assert calls[-1] == ("attribute: occlusion", 44, 44)
