"""What a subject answers in padded batches is what its model answers to each text alone."""

import pytest
import torch
from transformers import DistilBertForSequenceClassification, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from tests.subjects import families
from tests.subjects.families import DECODERS, SEVERAL, TEXTS, alone, answers, assert_same, model, snapshot, tokenizer
from veedor.errors import SubjectError
from veedor.subjects import Subject, frozen

EVERY = sorted(set(SEVERAL) - {"fnet"})  # fnet mixes padding in: see below


def close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return bool((found - expected).abs().max() <= 1e-5 * max(1.0, float(expected.abs().max())))


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("family", EVERY)
def test_a_text_in_a_padded_batch_is_answered_as_alone(family, side):
    subject = families.subject(family, padding_side=side)
    expected = torch.stack([alone(subject, text) for text in TEXTS])
    assert expected.std(dim=0).min() > 1e-3  # the texts are told apart, so a wrong row would be seen
    assert len(subject.batches(subject.encode(TEXTS))) == 1 and not subject._equal_lengths
    assert close(answers(subject, TEXTS), expected)


@pytest.mark.parametrize("family", sorted(set(EVERY) - {"longformer"}))
def test_embeddings_are_answered_as_the_ids_they_stand_for(family):
    subject = families.subject(family)
    assert close(answers(subject, TEXTS, embedded=True), answers(subject, TEXTS))


def test_a_model_that_takes_no_embeddings_is_answered_by_ids_and_says_so_for_gradients():
    """Longformer's head looks at the ids to place its global attention."""
    subject = families.subject("longformer")
    (batch,) = subject.batches(subject.encode(TEXTS[:1]))
    with pytest.raises(SubjectError, match="choose a method without gradients: occlusion"):
        subject.logits_from_embeddings(subject.embed(batch), batch)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bart"])
def test_batch_size_and_order_change_nothing(family):
    subject = families.subject(family)
    forwards = answers(subject, TEXTS)
    assert close(answers(subject, TEXTS, size=2), forwards)
    assert torch.equal(answers(subject, TEXTS[::-1]).flip(0), forwards)


@pytest.mark.parametrize("family", [name for name in DECODERS if name != "opt"])
def test_a_decoder_that_pads_with_its_end_token_reads_the_last_token_of_the_text(family):
    made = tokenizer(family, padding_side="right")
    made.pad_token = made.eos_token = "[SEP]"
    subject = Subject(model(family, pad_token_id=made.eos_token_id), made)
    expected = torch.stack([alone(subject, text) for text in TEXTS])
    assert close(answers(subject, TEXTS), expected)
    assert close(answers(subject, TEXTS, embedded=True), expected)


def test_a_decoder_without_any_padding_token_can_be_asked_in_batches():
    made = tokenizer("gpt2", pad_token=None)
    subject = Subject(model("gpt2", pad_token_id=None), made)
    assert subject.pad_id is None
    assert close(answers(subject, TEXTS), torch.stack([alone(subject, text) for text in TEXTS]))


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "bart"])
def test_an_empty_text_is_answered(family):
    subject = families.subject(family)
    assert torch.isfinite(answers(subject, ["", *TEXTS])).all()


def test_the_row_that_is_read_is_the_first_token_of_an_encoder():
    subject = families.subject("bert")
    (batch,) = subject.batches(subject.encode(TEXTS))
    assert subject.read_row(batch).tolist() == [0] * len(TEXTS)


def test_the_row_that_is_read_is_the_last_token_of_a_decoder():
    subject = families.subject("llama")
    encodings = subject.encode(TEXTS)
    (batch,) = subject.batches(encodings)
    assert subject.read_row(batch).tolist() == [len(encodings[row].ids) - 1 for row in batch.rows]


def test_the_row_that_is_read_is_the_eos_of_an_encoder_decoder():
    subject = families.subject("bart")
    (batch,) = subject.batches(subject.encode(TEXTS))
    for ids, row in zip(batch.ids.tolist(), subject.read_row(batch).tolist(), strict=True):
        assert ids[row] == families.SEP and families.SEP not in ids[row + 1 :]


def test_a_mean_head_reads_every_token_that_is_no_padding_alike():
    subject = families.subject("modernbert-mean")
    (batch,) = subject.batches(subject.encode(TEXTS[:2]))
    weights = subject.read_row(batch)
    assert weights[0].tolist() == pytest.approx([1 / 7] * 7 + [0] * (weights.shape[1] - 7))  # [CLS] 4 words . [SEP]


def test_dropout_is_off_even_where_the_model_was_training():
    made = model("bert").train()
    subject = Subject(made, tokenizer())
    assert torch.equal(answers(subject, TEXTS), answers(subject, TEXTS))


def test_making_and_asking_a_subject_changes_neither_model_nor_tokenizer():
    made, words = model("roberta"), tokenizer()
    before, serialised = snapshot(made), words.backend_tokenizer.to_str()
    answers(Subject(made, words), TEXTS)
    assert_same(before, snapshot(made))
    assert words.backend_tokenizer.to_str() == serialised


def test_frozen_parameters_take_no_gradient_and_are_put_back_after_an_error():
    subject = families.subject("bert")
    next(subject.model.parameters()).requires_grad_(False)
    before = snapshot(subject.model)

    def broken():
        with frozen(subject):
            assert not any(parameter.requires_grad for parameter in subject.model.parameters())
            raise KeyError

    with pytest.raises(KeyError):
        broken()
    assert_same(before, snapshot(subject.model))


def test_a_model_in_half_precision_is_asked_in_float32_and_stays_as_it_was():
    made = model("bert").bfloat16()
    subject = Subject(made, tokenizer())
    assert subject.card.stored_dtype == "bfloat16" and subject.card.audited_dtype == "float32"
    assert made.dtype == torch.bfloat16 and subject.model.dtype == torch.float32


def test_a_model_that_cannot_ignore_padding_is_never_given_any():
    subject = families.subject("fnet")
    assert all(bool(batch.mask.all()) for batch in subject.batches(subject.encode(TEXTS)))
    assert close(answers(subject, TEXTS), torch.stack([alone(subject, text) for text in TEXTS]))


class Stubborn(DistilBertForSequenceClassification):
    """Adds the width of the batch to its answer: padding changes it."""

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, **options):
        given = super().forward(input_ids, attention_mask, inputs_embeds, **options)
        width = (input_ids if input_ids is not None else inputs_embeds).shape[1]
        return SequenceClassifierOutput(logits=given.logits + torch.tensor([0.0, width / 10]))


def test_where_padding_changes_an_answer_only_texts_of_one_length_share_a_batch():
    plain = model("distilbert")
    stubborn = Stubborn(plain.config)
    stubborn.load_state_dict(plain.state_dict())
    subject = Subject(stubborn, tokenizer())
    batches = subject.batches(subject.encode([*TEXTS, TEXTS[0]]))
    assert [len(batch.rows) for batch in batches] == [1, 1, 1, 2, 1]
    assert all(bool(batch.mask.all()) for batch in batches)
    assert close(answers(subject, TEXTS), torch.stack([alone(subject, text) for text in TEXTS]))


class Pairs(PreTrainedModel):
    """Answers one number for each token, as a tagger does."""

    config_class = PreTrainedConfig

    def __init__(self, config):
        super().__init__(config)
        self.table = torch.nn.Embedding(60, 2)
        self.post_init()

    def forward(self, input_ids, **_):
        return SequenceClassifierOutput(logits=self.table(input_ids))


def test_a_model_that_answers_token_by_token_is_refused():
    with pytest.raises(SubjectError, match=r"logits of shape \(1, \d+, 2\), expected \(1, labels\)"):
        Subject(Pairs(PreTrainedConfig(num_labels=2)), tokenizer())
