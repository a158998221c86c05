"""The page of architectures says what is measured here: each row again, from the same tiny models."""

import pytest
import torch

from tools.architecture_configs import FAMILIES
from tools.architecture_oracles import LENGTHS, batch_of, eager_maps, model_of, projected
from tools.architectures import LIMIT, PAGE, Row, held, measure, methods_refused, methods_told, product_difference

LINES = {line.split(" | ")[0].removeprefix("| "): line.split(" | ") for line in PAGE.read_text("utf-8").splitlines()}
RUN = [name for name, family in FAMILIES.items() if not LINES[name][2].startswith("refused")]


@pytest.fixture(autouse=True)
def quiet():
    """BigBird and others say on every short text what they do with it."""
    from transformers import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    yield
    logging.set_verbosity(before)


def test_the_page_has_a_row_for_every_family_and_no_other():
    assert [name for name in LINES if name in FAMILIES] == list(FAMILIES) and len(FAMILIES) >= 30


@pytest.mark.parametrize("name", FAMILIES)
def test_a_row_measured_again_says_what_the_page_says(name):
    row = measure(FAMILIES[name])
    status = LINES[name][2].partition(" (")[0] if not row.how.startswith("refused") else LINES[name][2]
    assert row.how == status
    assert [told == "–" for told in LINES[name][3:6]] == [value is None for value in numbers(row)]


@pytest.mark.parametrize("name", RUN)
def test_what_is_called_captured_equals_eager_maps_and_makes_the_modules_own_output(name):
    row = measure(FAMILIES[name])
    assert row.weights is None or row.weights <= LIMIT
    assert row.product is not None and row.product <= LIMIT
    assert row.unseen == 0.0


def numbers(row: Row) -> tuple[float | None, ...]:
    return row.weights, row.product, row.unseen


@pytest.mark.parametrize("name", [name for name in RUN if name not in ("Falcon, ALiBi", "BigBird, block-sparse")])
def test_a_model_that_is_called_as_it_is_with_left_padding_shows_its_own_maps(name):
    """Position ids are those of the texts without their padding, where the model takes any."""
    family = FAMILIES[name]
    model = model_of(family)
    given = batch_of(model, family, left=True)
    real = given["attention_mask"].bool()
    with torch.no_grad():
        layers = held(model, given)
        for layer, own in zip(layers, eager_maps(model, family, given), strict=True):
            assert (layer.weights() - own).abs().amax(dim=(1, 3))[real].max() <= 1e-5
            if layer.kind == "self" and "decoder" not in layer.module:
                assert layer.weights().masked_fill(real[:, None, None, :], 0.0)[:, :][real_rows(real, layer)].max() == 0
        assert product_difference(layers, projected(model, family, given), given) <= 1e-5


def real_rows(real, layer):
    return real[:, None, :].expand(layer.weights().shape[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.classifier])
def test_the_methods_that_work_are_those_on_the_page(name):
    """Where a method was added: `make architectures`."""
    assert methods_told(methods_refused(FAMILIES[name])) == LINES[name][6].removesuffix(" |")


def test_lengths_of_the_batch_differ_so_that_padding_is_seen():
    assert len(set(LENGTHS)) == len(LENGTHS)
