"""The single rules on values worked by hand, what they refuse, and that they change nothing but one forward pass."""

import copy
import threading

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.attribution.tiny_models import TEXTS, bert_model, tokenizer
from tests.subjects import families
from tests.subjects.families import assert_same, snapshot
from veedor.attribution import Question, UnsupportedModelError, attribute, lrp
from veedor.attribution import lrp_derivatives as derivatives
from veedor.attribution.question import undisturbed
from veedor.subjects import Subject

VARIANTS = ("attn_lrp", "cp_lrp")
PRODUCT = {"attn_lrp": "halve", "cp_lrp": "detach_gate"}


@pytest.fixture
def ruled(bert):
    """Gradient of a function's sum at a point, under the rules of a method."""

    def slope(variant, function, *at):
        asked = Question(bert, [], 1, variant)
        points = [torch.tensor(own, dtype=torch.float64, requires_grad=True) for own in at]
        with undisturbed(bert), lrp.rules_of(asked, variant) as rules:
            with rules:
                value = function(*points)
            found = torch.autograd.grad(value.sum(), points, allow_unused=True)
        return [None if own is None else own.tolist() for own in found]

    return slope


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_activation_passes_on_its_value_over_its_input(ruled, variant):
    """relu(2)/2 = 1, relu(-3)/-3 = 0; tanh(2)/2; at 0 the limit: 0 by torch's convention for relu, 1 for tanh."""
    assert ruled(variant, torch.relu, [2.0, -3.0, 0.0]) == [[1.0, 0.0, 0.0]]
    assert ruled(variant, torch.tanh, [2.0, 0.0])[0] == pytest.approx([0.4820137900379085, 1.0])
    assert ruled(variant, functional.gelu, [0.0])[0] == pytest.approx([0.5])
    assert ruled(variant, functional.silu, [2.0])[0] == pytest.approx([0.8807970779778823])  # sigmoid(2)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_layer_norm_passes_on_as_if_its_deviation_were_constant(ruled, variant):
    """(1, 3, 8) has mean 4, variance 26/3; of output 0 with γ = 2: 2/σ · (2/3, −1/3, −1/3)."""
    deviation = (26 / 3) ** 0.5
    weight = torch.tensor([2.0, 1.0, 1.0], dtype=torch.float64)
    (found,) = ruled(variant, lambda x: functional.layer_norm(x, (3,), weight, None, 0.0)[0], [1.0, 3.0, 8.0])
    assert found == pytest.approx([4 / 3 / deviation, -2 / 3 / deviation, -2 / 3 / deviation])


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_root_mean_square_norm_passes_on_as_if_its_root_were_constant(ruled, variant):
    """(3, 4) has root mean square √12.5."""
    (found,) = ruled(variant, lambda x: functional.rms_norm(x, (2,), None, 0.0)[1], [3.0, 4.0])
    assert found == pytest.approx([0.0, 12.5**-0.5])


def test_attn_lrp_halves_the_gradients_of_both_factors(ruled):
    assert ruled("attn_lrp", lambda a, b: a * b, [3.0], [4.0]) == [[2.0], [1.5]]
    assert ruled("attn_lrp", lambda a, b: a @ b, [[1.0, 2.0]], [[3.0], [5.0]]) == [[[1.5, 2.5]], [[0.5], [1.0]]]
    assert ruled("attn_lrp", lambda a: a * a, [3.0]) == [[3.0]]  # two factors that are one: half of 2a


def test_cp_lrp_takes_the_activated_factor_of_a_product_for_a_constant(ruled):
    """silu(2) = 1.7615…: all of it goes to the other factor, on whichever side that stands."""
    for gated in (lambda gate, up: functional.silu(gate) * up, lambda gate, up: up * functional.silu(gate)):
        gate, up = ruled("cp_lrp", gated, [2.0], [5.0])
        assert gate is None and up == pytest.approx([1.7615941559557646])


def test_cp_lrp_refuses_relevance_that_comes_to_a_product_without_a_gate(ruled):
    with pytest.raises(UnsupportedModelError, match=r"cp_lrp .* mul multiplies two factors .* neither is a gate"):
        ruled("cp_lrp", lambda a, b: a * b, [2.0], [5.0])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("function", "named"),
    [
        (torch.sigmoid, "sigmoid"),
        (torch.exp, "exp"),
        (lambda x: x**2, "pow"),
        (lambda x: 1 / x, "div|reciprocal"),
        (lambda x: x / x.sum(), "div"),
        (lambda x: x.max(-1).values, "max"),
        (lambda x: x.topk(1), "topk"),
        (lambda x: x.softmax(-1), "softmax"),
        (lambda x: functional.log_softmax(x, -1), "log_softmax"),
        (lambda x: x.clamp(0, 1), "clamp"),
        (lambda x: x.abs(), "abs"),
        (lambda x: functional.relu(x, inplace=True), "relu"),
        (functional.softplus, "softplus"),
    ],
)
def test_a_function_without_a_rule_is_refused_by_name(bert, variant, function, named):
    """In a model's head, where the plain gradient would otherwise take its place without a word."""

    class Bent(nn.Module):
        def forward(self, x):
            made = function(x + 0.0)
            return made if isinstance(made, torch.Tensor) and made.shape == x.shape else x * 0 + made[0].sum()

    bent = copy.deepcopy(bert.model)
    bent.bert.pooler.activation = Bent()
    subject = Subject(bent, bert.tokenizer)
    with pytest.raises(UnsupportedModelError, match=f"{variant} does not fit .*activation .Bent.*({named})") as error:
        list(attribute(subject, TEXTS[:1], method=variant))
    assert error.value.code == "no_lrp_rule" and "integrated_gradients" in str(error.value)


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        return 3 * ctx.saved_tensors[0] ** 2 * gradient


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_derivative_that_a_model_wrote_itself_is_refused(bert, variant):
    class Own(nn.Module):
        def forward(self, x):
            return Cubed.apply(x)

    bert.model.bert.pooler.activation = Own()
    with pytest.raises(UnsupportedModelError, match="there is no rule for Cubed"):
        list(attribute(bert, TEXTS[:1], method=variant))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_norm_that_is_not_what_its_name_says_is_refused(variant):
    class OddRMSNorm(nn.Module):
        eps = 1e-6

        def forward(self, x):
            return x * torch.rsqrt(x.abs().mean(-1, keepdim=True) + self.eps)

    subject = families.subject("llama")
    subject.model.model.norm = OddRMSNorm()
    with pytest.raises(UnsupportedModelError, match="OddRMSNorm is not the division by its root mean square"):
        list(attribute(subject, families.TEXTS[:1], method=variant))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", ["mixtral", "gpt_oss"])
def test_models_that_choose_among_experts_are_refused_by_name(family, variant):
    """Their routers weigh experts by a softmax and choose the best: no paper of the two has a rule for the choice."""
    settings = {
        **families.SMALL, "num_key_value_heads": 2, "num_local_experts": 2, "num_experts_per_tok": 1, "head_dim": 4,
    }  # fmt: skip
    made = families.SEVERAL | {family: settings}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "SEVERAL", made)
        patch.setattr(families, "DECODERS", (*families.DECODERS, family))
        subject = families.subject(family)
    with pytest.raises(UnsupportedModelError, match=f"{variant} does not fit"):
        list(attribute(subject, families.TEXTS, method=variant))


@pytest.mark.parametrize(
    "act",
    "gelu_new gelu_fast quick_gelu gelu_python gelu_pytorch_tanh gelu_accurate relu silu mish relu2".split(),
)
def test_every_usual_activation_has_the_identity_rule(act):
    """A bias-free model conserves the logit whichever it is."""
    from tests.attribution.test_lrp import without_biases

    subject = Subject(without_biases(families.model("bert", hidden_act=act).double()), families.tokenizer())
    asked = Question(subject, subject.encode(families.TEXTS), 1, "cp_lrp")
    (batch,) = subject.batches(asked.encodings)
    with undisturbed(subject):
        found = lrp.propagate(asked, batch, "cp_lrp", score=lambda logits: logits[:, 1])
    assert ((found.tokens.sum(dim=1) - found.heights).abs() <= 1e-6 * found.heights.abs()).all()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "deberta-v2"])
def test_the_model_is_as_before(family, variant):
    subject = families.subject(family)
    before = snapshot(subject.model)
    lrp.conservation(Question(subject, subject.encode(families.TEXTS), 1, variant))
    assert_same(before, snapshot(subject.model))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", ["bert", "llama", "deberta-v2"])
@pytest.mark.parametrize("broken", ["norm", "attention", "last"])
def test_the_model_is_as_before_after_an_error_on_the_way(family, variant, broken):
    subject = families.subject(family)
    parts = [own for own in subject.model.base_model.modules() if broken in type(own).__name__.lower()]

    def fail(*_):
        raise KeyError("broken on purpose")

    hook = (parts or list(subject.model.modules()))[-1].register_forward_hook(fail)
    before = snapshot(subject.model)
    with pytest.raises(KeyError, match="broken on purpose"):
        lrp.conservation(Question(subject, subject.encode(families.TEXTS), 1, variant))
    assert_same(before, snapshot(subject.model))
    hook.remove()
    assert np.isfinite(next(iter(attribute(subject, families.TEXTS[:1], method=variant))).scores).all()


def definitions():
    """What libraries of this kind are wont to patch."""
    classes = [nn.LayerNorm, nn.RMSNorm, nn.GELU, nn.Tanh, nn.Linear, nn.Dropout, nn.Softmax]
    functions = [functional.layer_norm, functional.gelu, functional.scaled_dot_product_attention, functional.softmax]
    return [own.forward for own in classes] + functions + [torch.tanh, torch.matmul, torch.Tensor.__mul__]


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_class_or_function_is_changed_while_it_runs(bert, variant):
    before, seen = definitions(), []

    def look(*_):
        seen.append(definitions() == before)

    hook = bert.model.bert.encoder.layer[1].register_forward_hook(look)
    list(attribute(bert, TEXTS[:1], method=variant))
    hook.remove()
    assert seen == [True]


@pytest.mark.parametrize("variant", VARIANTS)
def test_another_model_keeps_its_own_gradient_meanwhile(bert, variant):
    """Asked for between batches, and by another thread in the middle of a forward pass."""
    other = bert_model()
    ids = torch.tensor([[2, 7, 8, 3]])
    points = other.get_input_embeddings()(ids).detach().requires_grad_()

    def gradient():
        return torch.autograd.grad(other(inputs_embeds=points).logits[0, 1], points)[0]

    expected, found = gradient(), []

    def elsewhere(*_):
        thread = threading.Thread(target=lambda: found.append(gradient()))
        thread.start()
        thread.join()

    hook = bert.model.bert.encoder.layer[1].register_forward_hook(elsewhere)
    list(attribute(bert, TEXTS[:1], method=variant, progress=lambda *_: found.append(gradient())))
    hook.remove()
    assert len(found) == 2 and all(torch.equal(own, expected) for own in found)


def test_a_slope_at_zero_is_only_known_of_functions_that_pass_through_zero():
    assert derivatives.slope_at_zero(functional.silu, torch.zeros(1)) == 0.5
    with pytest.raises(derivatives.NoRuleError, match=r"its value at 0 is 0\.5"):
        derivatives.slope_at_zero(torch.sigmoid, torch.zeros(1))


def test_part_of_a_gradient_is_taken_from_one_use_of_a_tensor_only():
    """x · 3 whole and x · 3 by a quarter: 3 + 0.75."""
    x = torch.ones(1, requires_grad=True)
    y = x * 1
    total = (derivatives.scaled(y, 0.25) * 3 + y * 3).sum()
    assert torch.autograd.grad(total, x)[0].tolist() == [3.75]


def test_zero_inputs_of_a_norm_and_of_an_activation_give_numbers():
    """An all-zero embedding, as padding rows have."""
    subject = Subject(bert_model(), tokenizer())
    with torch.no_grad():
        subject.model.get_input_embeddings().weight.zero_()
    for variant in VARIANTS:
        found = next(iter(attribute(subject, TEXTS[:1], method=variant)))
        assert (found.scores == 0).all()
