"""Answers at moved embeddings: how far they move, and that nothing but text, seed and draw decides where to."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.attribution.tiny_models import TEXTS
from veedor.attribution import METHODS, Jitter, Question, answer
from veedor.attribution.stability import embedded
from veedor.settings import Settings

MOVING = sorted(
    set(METHODS)
    & set(
        "rollout attention gradient input_x_gradient smoothgrad integrated_gradients grad_cam attention_gradient "
        "qkv_gradient".split()
    )
)
SMALL = Jitter(radius=0.02, draw=0)


def question(subject, method="gradient", jitter=None, **settings):
    target = 0 if method == "grad_cam" else 1  # Grad-CAM for label 1 is clamped to nothing on one of these models
    return Question(subject, subject.encode(TEXTS), target, method, settings=Settings(**settings), jitter=jitter)


def test_every_real_token_moves_by_the_radius_times_its_norm_and_padding_does_not_move(bert):
    asked = question(bert, jitter=SMALL)
    (batch,) = bert.batches(asked.encodings)
    still, moved = bert.embed(batch), embedded(asked, batch)
    share = (moved - still).norm(dim=-1) / still.norm(dim=-1)
    real = batch.mask.bool()
    torch.testing.assert_close(share[real], torch.full_like(share[real], 0.02), rtol=1e-4, atol=0)
    assert torch.equal(moved[~real], still[~real])


@pytest.mark.parametrize("method", MOVING)
def test_the_answer_at_a_moved_point_is_another_one_but_the_same_alone_and_in_a_batch(subject, method):
    still = answer(question(subject, method))
    moved = answer(question(subject, method, SMALL))
    alone = answer(question(subject, method, SMALL, batch_size=1))
    assert any(own.scores.any() for own in moved)
    for one, other, single in zip(still, moved, alone, strict=True):
        clamped_away = method == "grad_cam" and not one.scores.any() and not other.scores.any()
        if len(one.scores) > 1 and not clamped_away:
            assert np.abs(one.scores - other.scores).max() > 1e-5 * np.abs(one.scores).max()
        close = 0.01 if method == "integrated_gradients" else 1e-5
        assert np.abs(other.scores - single.scores).max() <= close * np.abs(other.scores).max() + 1e-6


def test_a_gradient_at_a_moved_point_is_the_gradient_there(bert):
    """By autograd at the embeddings that `embedded` gives, one text at a time."""
    asked = question(bert, jitter=SMALL, batch_size=1)
    found = answer(asked)
    for batch in bert.batches(asked.encodings, size=1):
        leaf = embedded(asked, batch).requires_grad_()
        logits = bert.model(inputs_embeds=leaf).logits
        (slope,) = torch.autograd.grad(logits[0, 1] - logits[0, 0], leaf)
        np.testing.assert_allclose(found[batch.rows[0]].scores, slope[0].norm(dim=-1), rtol=1e-4)


def test_draws_differ_from_each_other_and_seeds_too_but_a_radius_of_nothing_moves_nothing(bert):
    asked = question(bert)
    (batch,) = bert.batches(asked.encodings)
    first = embedded(replace(asked, jitter=SMALL), batch)
    assert torch.equal(first, embedded(replace(asked, jitter=SMALL), batch))
    assert not torch.equal(first, embedded(replace(asked, jitter=Jitter(0.02, 1)), batch))
    assert not torch.equal(first, embedded(replace(asked, jitter=SMALL, seed=1), batch))
    assert torch.equal(bert.embed(batch), embedded(replace(asked, jitter=Jitter(0.0, 0)), batch))
