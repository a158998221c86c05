"""The tiny models as fixtures, each made afresh; one thread, as many tests run side by side."""

import pytest
import torch

from tests.attribution.tiny_models import FAMILIES, bart_model, bert_model, tokenizer
from veedor.subjects import Subject


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(params=sorted(FAMILIES))
def subject(request: pytest.FixtureRequest) -> Subject:
    """A fresh subject of each family."""
    return FAMILIES[request.param]()


@pytest.fixture
def bert() -> Subject:
    return FAMILIES["bert"]()


@pytest.fixture
def sharp_bert() -> Subject:
    """The same BERT with its query projections tripled: attention jumps on the way from the baseline."""
    model = bert_model()
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            layer.attention.self.query.weight.mul_(3)
            layer.attention.self.query.bias.mul_(3)
    return Subject(model, tokenizer())


@pytest.fixture
def bart() -> Subject:
    return Subject(bart_model(), tokenizer())
