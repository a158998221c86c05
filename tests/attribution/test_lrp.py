"""Relevance propagation against one written out by hand, and the sums that the papers promise."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.attribution import lrp_by_hand
from tests.attribution.tiny_models import TEXTS, bert_model, gpt2_model, llama_model, tokenizer
from tests.subjects import families
from veedor.attribution import Question, UnsupportedModelError, attribute, lrp
from veedor.attribution.question import undisturbed
from veedor.subjects import Subject

VARIANTS = ("attn_lrp", "cp_lrp")
MAKE = {"bert": bert_model, "gpt2": gpt2_model, "llama": llama_model}
FAMILIES = [name for name in families.SEVERAL if name not in ("bart", "t5", "fnet", "longformer")]


class ExactRMSNorm(nn.Module):
    """Llama's norm, or Gemma's, without its detour over float32, which would drown the comparison in rounding."""

    def __init__(self, like):
        super().__init__()
        self.weight, self.added = like.weight, float(type(like).__name__.startswith("Gemma"))
        self.eps = getattr(like, "variance_epsilon", getattr(like, "eps", None))

    def forward(self, x):
        return (self.added + self.weight) * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


def exact(model):
    """The model in float64, norms too, and none of them the identity."""
    generator = torch.Generator().manual_seed(5)
    for name, module in list(model.double().named_modules()):
        if type(module).__name__.endswith("RMSNorm"):
            module.weight.data = 0.5 + torch.rand(module.weight.shape, generator=generator).double()
            parent, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(parent), leaf, ExactRMSNorm(module))
        elif isinstance(module, nn.LayerNorm):
            module.weight.data = 0.5 + torch.rand(module.weight.shape, generator=generator).double()
    return model


def without_biases(model):
    """No bias, and embeddings of positions and types that add nothing."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or any(part in name for part in ("position_emb", "token_type", "wpe")):
                parameter.zero_()
    return model


def question(subject, texts, variant, target=1):
    return Question(subject, subject.encode(texts), target, variant)


def propagated(subject, texts, variant, *, logit=None, by_layer=False):
    """Each batch, padding included, and its relevance; of a raw logit where one is named."""
    asked = question(subject, texts, variant)
    score = None if logit is None else lambda logits: logits[:, logit]
    with undisturbed(subject):
        for batch in subject.batches(asked.encodings):
            yield batch, lrp.propagate(asked, batch, variant, by_layer=by_layer, score=score)


def scores(subject, texts, variant):
    return [found.scores for found in attribute(subject, texts, method=variant)]


def assert_close(mine, other, within):
    for one, two in zip(mine, other, strict=True):
        assert np.abs(one - two).max() <= within * np.abs(two).max()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", sorted(MAKE))
def test_scores_are_those_of_the_propositions_written_out(family, variant):
    model = exact(MAKE[family]())
    subject = Subject(model, tokenizer(bert=family == "bert"))
    expected = [
        lrp_by_hand.PROPAGATE[family](model, [int(at) for at in encoding.ids], variant)[0]
        for encoding in subject.encode(TEXTS[:3])
    ]
    assert_close(scores(subject, TEXTS[:3], variant), expected, 1e-6)


@pytest.mark.parametrize("family", sorted(MAKE))
def test_the_propagation_written_out_computes_the_models_own_logits(family):
    model = exact(MAKE[family]())
    subject = Subject(model, tokenizer(bert=family == "bert"))
    (encoding,) = subject.encode(TEXTS[:1])
    _, logits = lrp_by_hand.PROPAGATE[family](model, [int(at) for at in encoding.ids], "cp_lrp")
    assert np.abs(logits - families.alone(subject, TEXTS[0]).numpy()).max() < 1e-6 * np.abs(logits).max()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_rules_change_derivatives_and_no_value(family, variant):
    subject = families.subject(family)
    heard = []
    asked = question(subject, families.TEXTS, variant)
    (batch,) = subject.batches(asked.encodings)
    with undisturbed(subject):
        lrp.propagate(asked, batch, variant, score=lambda logits: (heard.append(logits.detach()), logits[:, 1])[1])
        with torch.no_grad():
            plain = subject.logits(batch)
    assert (heard[0] - plain).abs().max() <= 1e-6 * plain.abs().max()


@pytest.mark.parametrize("family", ["bert", "llama", "mistral", "gemma2", "gpt2", "modernbert", "distilbert", "mpnet"])
def test_conservative_relevance_sums_to_the_logit_where_nothing_is_added(family):
    """Biases off: at the input and at every layer the whole logit arrives."""
    subject = Subject(without_biases(exact(families.model(family))), families.tokenizer(family))
    for logit in (0, 1):
        for _, found in propagated(subject, families.TEXTS, "cp_lrp", logit=logit, by_layer=True):
            assert len(found.layers) == 3
            for sums in (found.tokens.sum(dim=1), *found.layers):
                assert ((sums - found.heights).abs() <= 1e-6 * found.heights.abs()).all()


def test_attn_lrp_does_not_conserve_and_says_how_much_arrives():
    subject = Subject(exact(llama_model()), tokenizer(bert=False))
    found = [own.facts["conservation_ratio"] for own in lrp.attn_lrp(question(subject, TEXTS, "attn_lrp"))]
    assert min(abs(ratio - 1) for ratio in found) > 0.1


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_told_ratio_is_the_sum_of_the_scores_over_the_margin(bert, variant):
    for own, text in zip(getattr(lrp, variant)(question(bert, TEXTS, variant)), TEXTS, strict=True):
        logits = families.alone(bert, text).double()
        margin = float(logits[1] - logits[0])
        assert own.facts["conservation_ratio"] == pytest.approx(own.scores.sum() / margin, rel=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_ratio_of_every_layer_is_told_and_does_not_explode(variant):
    """Twelve layers: a rule that makes ten times as much of relevance in each would reach 1e12."""
    model = families.model("llama", num_hidden_layers=12)
    subject = Subject(model, families.tokenizer("llama"))
    for told in lrp.conservation(question(subject, families.TEXTS, variant)):
        if told.ratios is None:
            assert "below 0.1" in told.reason and abs(told.score) < 0.1 and told.at_input is None
            continue
        assert len(told.ratios) == 12
        assert told.at_input == pytest.approx(told.ratios[0], rel=1e-4)  # the first layer is given the embeddings
        assert max(map(abs, told.ratios)) < 100
        assert variant == "attn_lrp" or told.ratios == pytest.approx([1.0] * 12, abs=1e-4)


@pytest.mark.parametrize("family", ["bert", "albert", "modernbert", "gpt2", "distilbert", "deberta-v2", "bloom"])
def test_there_is_a_ratio_for_every_call_of_a_layer(family):
    """ALBERT calls one layer three times."""
    told = lrp.conservation(question(families.subject(family), families.TEXTS[:1], "cp_lrp"))
    assert told[0].reason is not None or len(told[0].ratios) == 3


def test_no_ratio_is_told_of_a_score_next_to_nothing(bert):
    with torch.no_grad():
        bert.model.classifier.weight.mul_(1e-3)
        bert.model.classifier.bias.zero_()
    (own,) = lrp.cp_lrp(question(bert, TEXTS[:1], "cp_lrp"))
    assert own.facts == {} and own.flags == ("no_conservation_ratio",)
    (told,) = lrp.conservation(question(bert, TEXTS[:1], "cp_lrp"))
    assert told.ratios is None and told.at_input is None and "below 0.1" in told.reason


def test_conservation_is_not_known_of_other_methods(bert):
    with pytest.raises(ValueError, match="not of 'gradient'"):
        lrp.conservation(question(bert, TEXTS[:1], "gradient"))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "gemma2", "modernbert"])
def test_the_implementation_of_attention_that_a_model_came_with_changes_nothing(family, variant):
    fused, eager = families.subject(family), families.subject(family)
    eager.model.set_attn_implementation("eager")
    found = scores(fused, families.TEXTS, variant), scores(eager, families.TEXTS, variant)
    assert_close(*found, 1e-5)
    assert eager.model.config._attn_implementation == "eager"


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_fused_kernel_and_attention_step_by_step_agree(variant):
    """A soft cap too high to cap anything goes step by step, product by product, to the same end."""
    fused = families.subject("gemma2", attn_logit_softcapping=None)
    stepwise = families.subject("gemma2", attn_logit_softcapping=1e5)
    assert_close(scores(fused, families.TEXTS, variant), scores(stepwise, families.TEXTS, variant), 1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_padding_gets_no_relevance_at_all(family, variant):
    ((batch, found),) = propagated(families.subject(family), families.TEXTS, variant)
    assert (found.tokens[~batch.mask.bool()] == 0).all()
    assert torch.isfinite(found.tokens).all() and found.tokens.abs().max() > 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_padding_on_the_left_gets_none_either_and_changes_nothing(variant):
    left, right = (families.subject("gpt2", padding_side=side) for side in ("left", "right"))
    ((batch, found),) = propagated(left, families.TEXTS, variant)
    assert (found.tokens[~batch.mask.bool()] == 0).all()
    assert_close(scores(left, families.TEXTS, variant), scores(right, families.TEXTS, variant), 1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "bloom"])
def test_what_comes_after_the_row_that_the_head_reads_gets_nothing(family, variant):
    """A decoder's head passes over padding tokens that stand in the text itself."""
    subject = families.subject(family)
    text = "a quiet neighbour sings [PAD] [PAD]"
    (found,) = scores(subject, [text], variant)
    ids = list(subject.encode([text])[0].ids)
    assert ids[-2:] == [families.PAD, families.PAD]
    assert (found[-2:] == 0).all() and np.abs(found[:-2]).min() > 0


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_alone_and_in_a_batch_gets_the_same_relevance(family, variant):
    subject = families.subject(family)
    together = scores(subject, families.TEXTS, variant)
    alone = [scores(subject, [text], variant)[0] for text in families.TEXTS]
    assert_close(together, alone, 1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_relevance_of_the_other_label_is_the_opposite(bert, variant):
    one, other = (getattr(lrp, variant)(question(bert, TEXTS[:2], variant, target))[0].scores for target in (0, 1))
    np.testing.assert_allclose(one, -other, rtol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_watched_model_is_propagated_like_one_that_shows_its_queries_and_keys(variant):
    """MPNet without its position bias is BERT without token types: the same weights, the same relevance."""
    mpnet, bert = families.model("mpnet"), families.model("bert")
    with torch.no_grad():
        mpnet.mpnet.encoder.relative_attention_bias.weight.zero_()
        bert.bert.embeddings.token_type_embeddings.weight.zero_()
        given, taken = bert.bert, mpnet.mpnet
        taken.embeddings.word_embeddings.weight.copy_(given.embeddings.word_embeddings.weight)
        taken.embeddings.position_embeddings.weight[2:].copy_(given.embeddings.position_embeddings.weight[:-2])
        for mine, theirs in zip(taken.encoder.layer, given.encoder.layer, strict=True):
            copies = [
                (mine.attention.attn.q, theirs.attention.self.query),
                (mine.attention.attn.k, theirs.attention.self.key),
                (mine.attention.attn.v, theirs.attention.self.value),
                (mine.attention.attn.o, theirs.attention.output.dense),
                (mine.intermediate.dense, theirs.intermediate.dense),
                (mine.output.dense, theirs.output.dense),
                (mine.attention.LayerNorm, theirs.attention.output.LayerNorm),
                (mine.output.LayerNorm, theirs.output.LayerNorm),
            ]
            for to, of in copies:
                to.load_state_dict(of.state_dict())
        taken.embeddings.LayerNorm.load_state_dict(given.embeddings.LayerNorm.state_dict())
        mpnet.classifier.dense.load_state_dict(given.pooler.dense.state_dict())
        mpnet.classifier.out_proj.load_state_dict(bert.classifier.state_dict())
        for model in (mpnet, bert):
            model.config.layer_norm_eps = 1e-12
            for module in model.modules():
                if isinstance(module, nn.LayerNorm):
                    module.eps = 1e-12
    watched, seen = (Subject(model, families.tokenizer()) for model in (mpnet, bert))
    assert_close(scores(watched, families.TEXTS, variant), scores(seen, families.TEXTS, variant), 1e-4)


def test_an_encoder_decoder_is_refused_by_name(bart):
    with pytest.raises(UnsupportedModelError, match=r"cp_lrp does not fit .* encoder-decoder"):
        list(attribute(bart, TEXTS, method="cp_lrp"))


def test_a_model_whose_blocks_are_not_known_tells_the_ratio_at_its_input_alone():
    """XLM keeps attentions, norms and feed-forwards in lists of their own."""
    with pytest.MonkeyPatch.context() as patch:
        own = {"emb_dim": 16, "n_layers": 3, "n_heads": 4, "max_position_embeddings": 66}
        patch.setattr(families, "SEVERAL", families.SEVERAL | {"xlm": own})
        subject = families.subject("xlm")
    told = lrp.conservation(question(subject, families.TEXTS[:1], "cp_lrp"))[0]
    assert told.ratios is None and told.at_input is not None and "no list of blocks" in told.reason
