"""Context mixing: hand-worked parts, explicit float64 loops over heads, and blocks that are not understood."""

import copy

import numpy as np
import pytest
import torch

from tests.attribution import blocks_by_hand
from tests.attribution.tiny_models import FAMILIES, TEXTS, bert_model, tokenizer
from tests.subjects import families
from veedor.attribution import UnsupportedModelError, attribute, mixing
from veedor.attribution.decomposition import decomposed
from veedor.settings import Settings
from veedor.subjects import Subject, capture
from veedor.subjects.block_watch import blocks_seen
from veedor.subjects.blocks import blocks_of

METHODS = ["norm_rollout", "alti"]
CLOSE = {"bert": 1e-10, "gpt2": 1e-10, "llama": 1e-5}  # Llama's own softmax and norms are float32 inside
FIRST_OF_TWO = torch.tensor([[[3.0, 4.0], [0.0, -1.0]]])  # one row, two inputs, two dimensions


def exact(family: str) -> Subject:
    """The tiny model in float64, so that what is compared is the formula and not rounding."""
    subject = FAMILIES[family]()
    return Subject(copy.deepcopy(subject.model).double(), subject.tokenizer)


def test_a_norm_is_the_length_of_a_part():
    assert mixing.norm_contributions(FIRST_OF_TWO, torch.zeros(1, 2)).tolist() == [[5.0, 1.0]]


def test_alti_is_how_much_nearer_a_part_comes_to_the_whole_than_nothing_and_never_less_than_none():
    """y = (3, 3): |y| = 6; without the first part |(0, -1)| = 1, so 5; without the second |(3, 4)| = 7, so 0."""
    assert mixing.alti_contributions(FIRST_OF_TWO, torch.tensor([[3.0, 3.0]])).tolist() == [[5.0, 0.0]]


def test_alti_measures_against_the_whole_with_its_biases():
    """y = (5, 3), its bias (2, 0) included: |y| = 8; |(2, -1)| = 3, so 5; |(5, 4)| = 9, so 0."""
    assert mixing.alti_contributions(FIRST_OF_TWO, torch.tensor([[5.0, 3.0]])).tolist() == [[5.0, 0.0]]


def test_rows_are_divided_by_their_own_sums_and_a_row_of_zeros_stays_zero():
    found = mixing.shares(torch.tensor([[1.0, 3.0], [0.0, 0.0], [2.0, 0.0]]))
    assert found.tolist() == [[0.25, 0.75], [0.0, 0.0], [1.0, 0.0]]


def test_what_went_to_rows_without_contribution_is_said_beside_the_scores():
    read = torch.tensor([0.5, 0.5]).double()
    found = mixing.read_off(read, torch.tensor([[0.2, 0.8], [0.0, 0.0]]).double(), "alti")
    np.testing.assert_allclose(found.scores, [0.1, 0.4])
    assert found.facts["undefined_share"] == pytest.approx(0.5)


def test_a_row_that_nothing_contributes_to_is_refused_and_never_undefined():
    with pytest.raises(UnsupportedModelError, match="no token contributes to the row that the head reads") as refused:
        mixing.read_off(torch.tensor([1.0, 0.0]).double(), torch.zeros(2, 2).double(), "alti")
    assert refused.value.code == "no_contribution"


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_parts_are_those_of_explicit_loops_over_heads_and_tokens(family):
    subject = exact(family)
    (encoding,) = subject.encode(TEXTS[:1])
    n = len(encoding.ids)
    found = []

    def take(seen):
        rows = list(decomposed(seen, 0, n))
        found.append((torch.cat([own.parts for own in rows]), torch.cat([own.bias for own in rows])))

    with torch.no_grad(), capture(subject) as seen, blocks_seen(seen, blocks_of(subject.model), take):
        subject.logits(subject.batches([encoding])[0])
    expected = blocks_by_hand.layers_of(subject.model, encoding.ids)
    assert len(found) == len(expected) == 3
    for (parts, bias), own in zip(found, expected, strict=True):
        np.testing.assert_allclose(parts.numpy(), own.parts, atol=CLOSE[family])
        np.testing.assert_allclose(bias.numpy() + 0 * own.bias, own.bias, atol=CLOSE[family])
        np.testing.assert_allclose(own.parts.sum(axis=1) + own.bias, own.output, atol=CLOSE[family])


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
@pytest.mark.parametrize("method", METHODS)
def test_the_row_that_is_read_is_that_of_the_explicit_loops(family, method):
    subject = exact(family)
    row = 0 if family == "bert" else -1
    for encoding, found in zip(subject.encode(TEXTS), attribute(subject, TEXTS, method=method), strict=True):
        whole = blocks_by_hand.mixed(blocks_by_hand.layers_of(subject.model, encoding.ids), method)
        np.testing.assert_allclose(found.scores, whole[row], atol=CLOSE[family])
        assert found.options["undefined_share"] == pytest.approx(1 - whole[row].sum(), abs=1e-6)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "modernbert", "opt", "gpt_neox", "albert"])
def test_parts_and_biases_sum_to_the_models_own_output(family):
    """In float32, to 1e-5 of the largest number."""
    subject = families.subject(family)
    encodings = subject.encode(families.TEXTS)
    worst = []

    def take(seen):
        for text, length in enumerate(lengths):
            for rows in decomposed(seen, text, length):
                off = (rows.parts.sum(dim=1) + rows.bias - rows.whole).abs().max()
                worst.append(float(off / seen.output[text, :length].abs().max()))

    (batch,) = subject.batches(encodings)
    lengths = batch.mask.sum(dim=1).tolist()
    with torch.no_grad(), capture(subject) as seen, blocks_seen(seen, blocks_of(subject.model), take):
        subject.logits(batch)
    assert len(worst) >= 3 * len(lengths) and max(worst) < 1e-5


@pytest.mark.parametrize("block", [1, 1000, 2**21])
def test_how_many_rows_are_held_at_a_time_changes_nothing(monkeypatch, bert, block):
    whole = next(iter(attribute(bert, TEXTS[:1], method="alti"))).scores
    monkeypatch.setattr("veedor.attribution.decomposition.BLOCK_PARTS", block)
    np.testing.assert_allclose(next(iter(attribute(bert, TEXTS[:1], method="alti"))).scores, whole, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_model_on_eager_attention_gives_the_same(subject, method):
    fused = [found.scores for found in attribute(subject, TEXTS, method=method)]
    subject.model.set_attn_implementation("eager")
    for one, found in zip(fused, attribute(subject, TEXTS, method=method), strict=True):
        np.testing.assert_allclose(found.scores, one, atol=1e-5 * one.max())
    assert subject.model.config._attn_implementation == "eager"


@pytest.mark.parametrize("method", METHODS)
def test_nothing_of_the_future_is_drawn_by_a_decoder(method):
    """The last token is another one: all that stands before it draws the same, and it is drawn by itself alone."""
    subject = exact("gpt2")
    layers = blocks_by_hand.layers_of(subject.model, subject.encode(TEXTS[:1])[0].ids)
    assert np.triu(blocks_by_hand.mixed(layers, method), 1).max() == 0
    maps = []

    def take(seen):
        n = seen.states.shape[1]
        measure = mixing.alti_contributions if method == "alti" else mixing.norm_contributions
        maps.extend(measure(rows.parts, rows.whole) for rows in decomposed(seen, 0, n))

    with torch.no_grad(), capture(subject) as seen, blocks_seen(seen, blocks_of(subject.model), take):
        subject.logits(subject.batches(subject.encode(TEXTS[:1]))[0])
    assert len(maps) == 3 and all(float(own.triu(1).abs().max()) == 0 for own in maps)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("family", ["deberta-v2", "bloom", "gemma2"])
def test_blocks_that_are_not_understood_are_refused_with_the_module_and_what_works(family, method):
    subject = families.subject(family)
    with pytest.raises(UnsupportedModelError, match=r"attention block at .*\.0\..* work on BERT, RoBERTa") as refused:
        list(attribute(subject, families.TEXTS, method=method))
    assert refused.value.code == "block_not_understood"


def test_a_block_whose_parts_do_not_add_up_is_refused():
    """A residual stream that is halved on the way is not what the names of the parts say."""
    model = bert_model()
    model.bert.encoder.layer[1].attention.output.dense.register_forward_hook(lambda _, __, made: made * 1.5)
    with pytest.raises(UnsupportedModelError, match=r"layer\.1\.attention\.self .* sum to something else"):
        list(attribute(Subject(model, tokenizer()), TEXTS, method="norm_rollout"))


def test_values_that_are_changed_behind_their_projection_are_refused():
    model = bert_model()

    subject = Subject(model, tokenizer())
    own = model.bert.encoder.layer[0].attention.self
    plain = own.value.forward
    own.value.forward = lambda states: plain(states) if states.shape[0] != len(TEXTS) else plain(states) * 2
    with pytest.raises(UnsupportedModelError, match="its values are not what Linear makes"):
        list(attribute(subject, TEXTS, method="norm_rollout"))


@pytest.mark.parametrize("method", METHODS)
def test_the_classifier_does_not_matter_because_there_is_no_target(bert, method):
    before = [found.scores for found in attribute(bert, TEXTS, method=method)]
    with torch.no_grad():
        bert.model.classifier.weight.normal_(generator=torch.Generator().manual_seed(2))
    for one, found in zip(before, attribute(bert, TEXTS, method=method), strict=True):
        np.testing.assert_array_equal(one, found.scores)


@pytest.mark.parametrize("family", ["modernbert", "modernbert-mean", "opt", "mistral", "gpt_neox", "albert", "electra"])
@pytest.mark.parametrize("method", METHODS)
def test_batched_equals_single_in_other_families(family, method):
    subject = families.subject(family)
    together = [found.scores for found in attribute(subject, families.TEXTS, method=method)]
    alone = attribute(subject, families.TEXTS, method=method, settings=Settings(batch_size=1))
    for one, found in zip(together, alone, strict=True):
        np.testing.assert_allclose(found.scores, one, atol=1e-5 * one.max())
