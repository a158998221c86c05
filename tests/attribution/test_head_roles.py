"""Effects of heads against projections with a hole, differences and cases worked by hand; diversity against scipy."""

import copy
import math
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from tests.subjects.families import TEXTS, assert_same, model, snapshot, tokenizer
from veedor.attribution import Question, UnsupportedModelError
from veedor.attribution.head_roles import HeadRoles, distance, first_order, head_roles
from veedor.errors import UsageError
from veedor.settings import Settings
from veedor.subjects import Subject, capture

FAMILIES = ("bert", "gpt2", "llama", "gemma2", "deberta-v2", "modernbert-mean")
PROJECTIONS = {"bert": "attention.output.dense.weight", "llama": "self_attn.o_proj.weight"}


def subject_of(family, *, exact=True):
    made = model(family)
    return Subject(made.double() if exact else made, tokenizer(family))


def asked(subject, texts=TEXTS, *, size=32):
    return Question(subject, subject.encode(texts), 1, "head roles", settings=Settings(batch_size=size))


def margins(subject, *, texts=TEXTS, rule=None):
    """The margin of each text, alone; by a rule where there is one."""
    found = []
    with torch.no_grad(), capture(subject) as seen:
        seen.answer_with(rule, watched=True)
        for encoding in subject.encode(texts):
            [batch] = subject.batches([encoding])
            found.append(float(subject.margin(subject.logits(batch), 1)))
    return np.array(found)


def scaled(number, head, factor):
    def rule(layer):
        if layer.index != number:
            return None
        output = layer.output().clone()
        output[:, head] *= factor
        return output

    return rule


def test_the_first_order_effect_is_the_sum_of_weights_times_slopes_by_hand():
    """Head 0: .5·2 + .5·4 + 1·(-1) = 2; head 1: -2 + .5·2 - .5·8 = -5."""
    weights = torch.tensor([[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.5, 0.5]]])
    slopes = torch.tensor([[[2.0, 4.0], [9.0, -1.0]], [[-2.0, 7.0], [2.0, -8.0]]])
    assert first_order(weights, slopes).tolist() == [2.0, -5.0]


def test_the_effect_is_the_mean_of_absolute_falls_and_keeps_layers_and_heads_apart():
    falls = np.array([[[1.0, -2.0, 0.0], [4.0, 0.0, 8.0]], [[-3.0, 0.0, 0.5], [4.0, 1.0, 0.0]]])
    roles = HeadRoles("gradient", falls, ((0.5, None), (0.25, None)))
    assert roles.effect.tolist() == [[2.0, 1.0, 0.25], [4.0, 0.5, 4.0]]
    assert roles.diversity == (0.375, None)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gradient_effect_is_the_slope_along_a_factor_on_the_heads_output(family):
    """Central differences at two widths, extrapolated; the norms of Llama and Gemma round to float32 on the way."""
    subject = subject_of(family)
    found = head_roles(asked(subject)).falls

    def slope(layer, head, step):
        above = margins(subject, rule=scaled(layer, head, 1 + step))
        return (above - margins(subject, rule=scaled(layer, head, 1 - step))) / (2 * step)

    for layer, head in ((0, 1), (1, 3), (2, 0), (2, 2)):
        expected = (4 * slope(layer, head, 0.02) - slope(layer, head, 0.04)) / 3
        np.testing.assert_allclose(found[:, layer, head], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("family", sorted(PROJECTIONS))
def test_zeroing_a_head_is_a_hole_in_the_output_projection(family):
    """A copy of the model whose projection ignores the head's four columns says the same, without any capture."""
    subject = subject_of(family)
    found, whole = head_roles(asked(subject), by="zeroing").falls, margins(subject)
    for layer, head in ((0, 1), (1, 3), (2, 0)):
        holed = copy.copy(subject)
        holed.model = copy.deepcopy(subject.model)
        named = dict(holed.model.named_parameters())
        [projection] = [own for name, own in named.items() if name.endswith(f"{layer}.{PROJECTIONS[family]}")]
        with torch.no_grad():
            projection[:, 4 * head : 4 * head + 4] = 0.0
        np.testing.assert_allclose(found[:, layer, head], whole - margins(holed), atol=1e-9)


@pytest.mark.parametrize("family", sorted(PROJECTIONS))
def test_where_heads_write_little_zeroing_is_the_first_order_effect(family):
    """Values shrunk to a thousandth: the margin is linear in what heads write, up to that."""
    subject = subject_of(family)
    with torch.no_grad():
        for name, parameter in subject.model.named_parameters():
            if ".value." in name or ".v_proj." in name:
                parameter.mul_(1e-3)
    cheap, exact = head_roles(asked(subject)).falls, head_roles(asked(subject), by="zeroing").falls
    np.testing.assert_allclose(cheap, exact, rtol=1e-2, atol=5e-3 * np.abs(exact).max())
    assert np.abs(exact).max() > 1e-4


@pytest.mark.parametrize("family", ["gpt2", "deberta-v2"])
def test_zeroing_a_head_is_its_output_times_nothing_in_any_family(family):
    subject = subject_of(family)
    found, whole = head_roles(asked(subject), by="zeroing").falls, margins(subject)
    np.testing.assert_allclose(found[:, 1, 2], whole - margins(subject, rule=scaled(1, 2, 0.0)), atol=1e-9)


@pytest.mark.parametrize("by", ["gradient", "zeroing"])
@pytest.mark.parametrize("family", FAMILIES)
def test_batches_and_padding_change_nothing(family, by):
    subject = subject_of(family, exact=False)
    together, alone = (head_roles(asked(subject, TEXTS[:4], size=size), by=by) for size in (32, 1))
    np.testing.assert_allclose(together.falls, alone.falls, rtol=1e-4, atol=1e-5 * np.abs(alone.falls).max())
    np.testing.assert_allclose(
        np.array(together.distances, dtype=float), np.array(alone.distances, dtype=float), atol=1e-4
    )


@pytest.mark.parametrize("family", ["bert", "llama", "modernbert-mean"])
def test_diversity_is_that_of_the_read_rows_of_the_models_own_maps(family):
    subject = subject_of(family)
    eager = copy.deepcopy(subject.model)
    eager.set_attn_implementation("eager")
    for text, found in zip(TEXTS, head_roles(asked(subject)).distances, strict=True):
        with torch.no_grad():
            maps = eager(**subject.tokenizer(text, return_tensors="pt"), output_attentions=True).attentions
        for layer, own in zip(maps, found, strict=True):
            rows = {"bert": layer[0, :, 0], "llama": layer[0, :, -1]}.get(family, layer[0].mean(dim=1)).numpy()
            pairs = [jensenshannon(one, other, base=2) for one, other in combinations(rows, 2)]
            assert own == pytest.approx(np.mean(pairs), abs=1e-6)


def test_the_distance_of_rows_by_hand():
    """(1, 0) and (.5, .5): middle (.75, .25); half of ld(4/3) + half ld(2/3) + half ld 2, a half of it."""
    bits = (math.log2(4 / 3) + 0.5 * math.log2(2 / 3) + 0.5 * math.log2(2)) / 2
    assert distance(np.array([[1.0, 0.0], [0.5, 0.5]])) == pytest.approx(math.sqrt(bits), rel=1e-12)


def test_rows_that_a_sink_left_part_of_count_by_their_shape():
    assert distance(np.array([[0.02, 0.06], [0.25, 0.75]])) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("rows", [[[0.5, 0.5]], [[0.0, 0.0], [0.5, 0.5]]])
def test_fewer_than_two_rows_have_no_distance(rows):
    assert distance(np.array(rows)) is None


def test_a_way_that_does_not_exist_and_no_texts_are_refused():
    subject = subject_of("bert")
    with pytest.raises(UsageError, match="did you mean 'zeroing'"):
        head_roles(asked(subject), by="zeroed")
    with pytest.raises(UsageError, match="no texts"):
        head_roles(asked(subject, []))


def test_an_encoder_decoder_is_refused_by_name():
    subject = Subject(model("bart"), tokenizer("bart"), name="summariser")
    with pytest.raises(UnsupportedModelError, match="summariser is an encoder-decoder"):
        head_roles(asked(subject, TEXTS[:1]))


@pytest.mark.parametrize("by", ["gradient", "zeroing"])
@pytest.mark.parametrize("family", ["llama", "deberta-v2"])
def test_the_model_is_left_as_it_was_found(family, by):
    subject = subject_of(family)
    before = snapshot(subject.model)
    head_roles(asked(subject, TEXTS[:2]), by=by)
    assert_same(before, snapshot(subject.model))
