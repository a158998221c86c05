"""Faults that other attribution libraries have had, each as a claim that would fail if it were ours."""

import numpy as np
import pytest
import torch

from tests.attribution.tiny_models import TEXTS, bert_model, tokenizer
from tests.subjects import families, tokenizer_families
from veedor.attribution import METHODS, Question, attribute, span_score
from veedor.attribution.methods import answer, why_not
from veedor.errors import UsageError
from veedor.settings import Settings, build
from veedor.subjects import Subject

NAMES = sorted(METHODS)
FROM_A_BASELINE = ["integrated_gradients", "kernel_shap", "lime", "occlusion"]
CHEAP = ["gradient", "integrated_gradients", "kernel_shap", "lime", "occlusion", "rollout"]
POSITIONS_FROM_PADDING = ["roberta", "xlm-roberta", "camembert"]


def explained(subject, text, method, **settings):
    return next(iter(attribute(subject, [text], method=method, settings=build(Settings, settings, "test"))))


def plain_margin(subject, text, target=1):
    """Log-odds of one label against the others, by the model itself on the text alone."""
    with torch.no_grad():
        encoded = subject.tokenizer(text, return_tensors="pt", truncation=True, max_length=subject.window)
        logits = subject.model(**encoded).logits[0].double()
    return float(logits[target] - torch.cat((logits[:target], logits[target + 1 :])).logsumexp(0))


def pieces(**settings) -> Subject:
    """A BERT whose words are cut into pieces."""
    made = tokenizer_families.tokenizer("wordpiece", 64)
    return Subject(families.model("bert", vocab_size=len(made), **settings), made)


# --- identical inputs


@pytest.mark.parametrize("method", FROM_A_BASELINE)
def test_a_text_that_is_its_own_baseline_gets_exactly_nothing_even_of_a_model_in_training_mode(method):
    subject = Subject(bert_model(), tokenizer())
    subject.model.train()
    found = explained(subject, "[MASK] [MASK] [MASK]", method)
    assert len(found.word_scores) == 3 and not found.scores.any()


@pytest.mark.parametrize("method", NAMES)
def test_the_same_text_twice_in_a_batch_gets_the_same_scores_bit_for_bit(bert, method):
    bert.model.train()
    first, _, second = attribute(bert, [TEXTS[0], TEXTS[1], TEXTS[0]], method=method)
    np.testing.assert_array_equal(first.scores, second.scores)


# --- targets


@pytest.mark.parametrize("target", [1, 1.0, True, ["LABEL_1"], b"LABEL_1"])
@pytest.mark.parametrize("method", ["random", "integrated_gradients"])
def test_a_target_that_is_no_name_is_refused_before_anything_is_computed(bert, method, target):
    hook = bert.model.register_forward_pre_hook(lambda *_: pytest.fail("the model was run"))
    with pytest.raises(UsageError, match=r"target is .* expected a label's name: LABEL_0, LABEL_1"):
        attribute(bert, TEXTS, method=method, target=target)
    hook.remove()


@pytest.mark.parametrize("target", ["LABEL_0", "LABEL_1", "LABEL_2"])
def test_each_of_several_labels_that_may_all_be_meant_is_explained_by_its_own_logit(target):
    subject = Subject(bert_model(labels=3), tokenizer(), head="sigmoid")
    text, number = "the old sailor", subject.target_index(target)
    (found,) = attribute(subject, [text], method="kernel_shap", target=target)
    with torch.no_grad():
        both = subject.tokenizer([text, "[MASK] [MASK] [MASK]"], return_tensors="pt")
        logits = subject.model(**both).logits[:, number]
    assert found.score_function == "logit of the target"
    assert found.scores.sum() == pytest.approx(float(logits[0] - logits[1]), abs=1e-4)


@pytest.mark.parametrize("target", ["LABEL_0", "LABEL_1", "LABEL_2"])
def test_one_of_three_labels_is_explained_by_its_log_odds_against_the_other_two(target):
    subject = Subject(bert_model(labels=3), tokenizer(), head="softmax")
    text, number = "the old sailor", subject.target_index(target)
    (found,) = attribute(subject, [text], method="kernel_shap", target=target)
    change = plain_margin(subject, text, number) - plain_margin(subject, "[MASK] [MASK] [MASK]", number)
    assert found.target == target and found.scores.sum() == pytest.approx(change, abs=1e-4)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bart", *POSITIONS_FROM_PADDING])
def test_what_is_explained_is_the_answer_that_the_model_itself_gives(family):
    """One word masked: the loss is the difference of the model's own two answers."""
    subject = families.subject(family)
    found = explained(subject, "the tall sailor", "occlusion")
    change = plain_margin(subject, "the tall sailor") - plain_margin(subject, "the [MASK] sailor")
    assert found.word_scores[1] == pytest.approx(change, abs=1e-4)


# --- shapes


@pytest.mark.parametrize("family", POSITIONS_FROM_PADDING)
@pytest.mark.parametrize("method", CHEAP)
def test_a_full_window_of_a_model_that_counts_positions_from_its_padding_is_explained(family, method):
    subject = Subject(families.model(family), families.tokenizer(model_max_length=10**30))
    found = explained(subject, "tall " * 100, method, kernel_shap={"samples": 8}, lime={"samples": 8})
    assert len(found.scores) == subject.window and np.isfinite(found.scores).all() and "truncated" in found.flags


@pytest.mark.parametrize("method", NAMES)
def test_a_text_longer_than_the_window_is_cut_as_the_tokenizer_says_and_told(bert, method):
    text = "the old sailor sings " * 40
    quick = {name: {"samples": 8} for name in ("kernel_shap", "lime")}
    found = explained(bert, text, method, **quick)
    assert "truncated" in found.flags and found.covered[1] < len(text)
    assert len(found.scores) == bert.window and found.word_offsets[-1][1] == found.covered[1]
    assert span_score(found, len(text) - 7, len(text) - 2) is None


@pytest.mark.parametrize("texts", [[["the", "old", "sailor"]], [("the", "sailor")], [None], "the old sailor", [b"the"]])
def test_anything_but_a_list_of_strings_is_refused_and_the_way_out_named(bert, texts):
    with pytest.raises(UsageError, match="expected a list of strings"):
        attribute(bert, texts, method="occlusion")


@pytest.mark.parametrize("single", ["[CLS] $A", "$A [SEP]", "$A", "[CLS] [CLS] $A [SEP] [SEP]"])
@pytest.mark.parametrize("method", CHEAP)
def test_special_tokens_may_stand_in_front_behind_or_nowhere(method, single):
    from tokenizers.processors import TemplateProcessing

    made = tokenizer()
    marks = [("[CLS]", made.cls_token_id), ("[SEP]", made.sep_token_id)]
    made.backend_tokenizer.post_processor = TemplateProcessing(single=single, special_tokens=marks)
    subject = Subject(bert_model(), made)
    texts = ["the old sailor", "Muslim!", "the tall tenant met a commuter"]
    for text, found in zip(texts, attribute(subject, texts, method=method), strict=True):
        added = len(single.split()) - 1
        assert len(found.scores) == len(made.tokenize(text)) + added
        assert found.words == text.split() and found.word_scores.all()


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("family", ["wordpiece", "byte_bpe", "roberta", "unigram", "llama_bpe"])
def test_words_are_the_sum_or_the_maximum_of_their_pieces(method, family):
    made = tokenizer_families.tokenizer(family, 64)
    marks = {"pad_token_id": made.pad_token_id, "bos_token_id": None, "eos_token_id": made.eos_token_id}
    subject = Subject(families.model("bert", vocab_size=len(made), **marks), made)
    text = "unbelievable, Muñoz: 👍🏽 sings"
    if why_not(subject, METHODS[method]) is not None:
        pytest.skip("this model is refused")
    found = explained(subject, text, method)
    assert found.words == text.split() and max(map(len, map(made.tokenize, found.words))) > 1
    fuse = np.sum if METHODS[method].additive else np.max
    for (start, end), score in zip(found.word_offsets, found.word_scores, strict=True):
        own = [
            value
            for value, (first, last) in zip(found.scores, found.offsets, strict=True)
            if start <= first < last <= end
        ]
        assert score == pytest.approx(fuse(own))


def test_the_mean_of_the_pieces_can_be_asked_for_where_scores_do_not_add_up():
    subject, text = pieces(), "unbelievable sailor"
    (found,) = attribute(subject, [text], method="gradient", words="mean")
    own = [value for value, (_, end) in zip(found.scores, found.offsets, strict=True) if 0 < end <= 12]
    assert len(own) > 1 and found.word_scores[0] == pytest.approx(np.mean(own))
    assert span_score(found, 0, 12) == pytest.approx(np.mean(own)) and found.options["words"] == "mean"


def test_scores_that_add_up_are_summed_even_where_the_mean_is_asked_for():
    (found,) = attribute(pieces(), ["unbelievable sailor"], method="occlusion", words="mean")
    assert found.word_scores.sum() == pytest.approx(found.scores.sum()) and "words" not in found.options


def test_another_way_to_words_is_refused(bert):
    with pytest.raises(UsageError, match="words"):
        attribute(bert, TEXTS, method="gradient", words="median")


# --- batches


def test_integrated_gradients_on_the_same_nodes_are_the_same_in_a_batch_and_alone(bert):
    """With no more nodes than the first nine, none is added, so that both ways add the same numbers."""
    settings = build(Settings, {"integrated_gradients": {"tolerance": 0.5, "max_nodes": 15}}, "test")
    encodings = bert.encode(TEXTS)
    together = answer(Question(bert, encodings, 1, "integrated_gradients", settings=settings))
    for encoding, one in zip(encodings, together, strict=True):
        (alone,) = answer(Question(bert, [encoding], 1, "integrated_gradients", settings=settings))
        assert alone.nodes == one.nodes
        np.testing.assert_allclose(one.scores, alone.scores, atol=1e-5 * np.abs(alone.scores).max() + 1e-6)


# --- integrals


def of_bert(subject, tolerance, **options):
    settings = {"integrated_gradients": {"tolerance": tolerance, "max_nodes": 4000} | options}
    return explained(subject, TEXTS[0], "integrated_gradients", **settings)


@pytest.mark.parametrize("kind", ["bert", "sharp_bert"])
def test_more_nodes_leave_a_smaller_gap_and_never_another_sum(kind, request):
    """Sums that were scaled with the number of nodes, or grids that leave an end out, would drift from the rise."""
    subject = request.getfixturevalue(kind)
    subject.model.double()
    hidden = " ".join(["[MASK]"] * (len(subject.tokenizer(TEXTS[0])["input_ids"]) - 2))
    rise = plain_margin(subject, TEXTS[0]) - plain_margin(subject, hidden)
    rough, fine, finest = (of_bert(subject, tolerance) for tolerance in (0.1, 1e-3, 1e-5))
    assert rough.nodes < fine.nodes < finest.nodes
    assert finest.gap <= fine.gap <= rough.gap or rough.gap < 1e-5
    for found, miss in ((rough, 0.1), (fine, 1e-3), (finest, 1e-5)):
        assert found.scores.sum() == pytest.approx(rise, abs=miss * max(abs(rise), 0.1))


def test_the_interpolated_tensor_is_named_and_is_the_word_embedding_without_positions(bert):
    """By hand on both tensors: the scores differ, the sums do not, and ours are those of the word embeddings."""
    found = of_bert(bert, 1e-4)
    encoded = bert.tokenizer(TEXTS[0], return_tensors="pt", return_special_tokens_mask=True)
    special = encoded["special_tokens_mask"].bool()
    ids = torch.stack((torch.where(special, encoded["input_ids"], bert.mask_id)[0], encoded["input_ids"][0]))
    embeddings = bert.model.bert.embeddings

    def by_hand(ends, rest):
        nodes, weights = np.polynomial.legendre.leggauss(256)
        at, step = torch.tensor((nodes + 1) / 2, dtype=torch.float32)[:, None, None], ends[1] - ends[0]
        points = (ends[0] + at * step).requires_grad_()
        logits = rest(points)
        (slope,) = torch.autograd.grad((logits[:, 1] - logits[:, 0]).sum(), points)
        return ((slope * step).sum(dim=-1) * torch.tensor(weights / 2, dtype=torch.float32)[:, None]).sum(dim=0)

    words = by_hand(embeddings.word_embeddings(ids).detach(), lambda own: bert.model(inputs_embeds=own).logits)
    blocks = by_hand(embeddings(ids).detach(), lambda own: behind_embeddings(bert.model, own))
    assert found.options["differentiated"] == "inputs_embeds"
    np.testing.assert_allclose(found.scores, words, atol=1e-3 * float(words.abs().sum()))
    assert float((words - blocks).abs().sum()) > 0.02 * float(words.abs().sum())
    assert float(words.sum()) == pytest.approx(float(blocks.sum()), abs=2e-3)


def behind_embeddings(model, states):
    """A BERT classifier from the output of its embedding block on."""
    for layer in model.bert.encoder.layer:
        states = layer(states)
        states = states[0] if isinstance(states, tuple) else states
    return model.classifier(model.bert.pooler(states))


@pytest.mark.parametrize("baseline", ["mask", "pad", "zero", "mean"])
def test_the_record_names_the_baseline_and_the_rule(bert, baseline):
    found = of_bert(bert, 0.01, baseline=baseline)
    assert found.options["baseline"] == baseline and found.options["rule"] == "boole_simpson"


def test_memory_does_not_hang_on_the_number_of_nodes(sharp_bert):
    """The widest pass of a text alone has as many rows as a batch, for many times the nodes too."""
    seen = []
    hook = sharp_bert.model.bert.encoder.register_forward_pre_hook(lambda _, given: seen.append(given[0].shape[0]))
    few = explained(sharp_bert, TEXTS[0], "integrated_gradients", batch_size=8)
    many = explained(
        sharp_bert,
        TEXTS[0],
        "integrated_gradients",
        batch_size=8,
        integrated_gradients={"tolerance": 1e-4, "max_nodes": 400},
    )
    hook.remove()
    assert many.nodes > 3 * few.nodes and max(seen) == 8
