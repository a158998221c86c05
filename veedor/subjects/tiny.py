"""A tiny BERT trained from scratch, with or without a planted bias: for trying an audit where the truth is known.

Every word is one vocabulary entry, so a bias can be planted on the words of one group and on nothing else: a shift
that raises the target's margin is added to the embeddings of those words, scaled by bisection until the measured effect
is the wanted one. Two layers, a few seconds of training on a CPU; not a model for any real use.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from veedor.errors import UsageError

if TYPE_CHECKING:
    import torch
    from transformers import BertForSequenceClassification, PreTrainedTokenizerFast

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORD = r"[\w'’-]+|[^\w\s]"


@dataclass(frozen=True)
class Training:
    """How long and how hard to train; the defaults reach the plateau on a few thousand template texts."""

    steps: int = 240
    batch: int = 96
    learning_rate: float = 2e-3


def whole_word_tokenizer(texts: Iterable[str], *, window: int = 64) -> "PreTrainedTokenizerFast":
    """A lower-casing tokenizer whose vocabulary is every word and mark of the texts, in alphabetical order."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    splitter = pre_tokenizers.Split(Regex(WORD), behavior="removed", invert=True)
    words = sorted({word.lower() for text in texts for word, _ in splitter.pre_tokenize_str(text)})
    vocabulary = {word: index for index, word in enumerate((*SPECIALS, *words))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = splitter
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    make: Any = PreTrainedTokenizerFast
    made: PreTrainedTokenizerFast = make(
        tokenizer_object=tokenizer,
        model_max_length=window,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    return made


def untrained(
    tokenizer: "PreTrainedTokenizerFast", labels: Sequence[str], *, seed: int
) -> "BertForSequenceClassification":
    """A BERT of two layers, four heads and width 48, with random weights fixed by the seed."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=tokenizer.model_max_length,
        pad_token_id=tokenizer.pad_token_id,
        id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
        problem_type="single_label_classification",
    )
    model: Any = BertForSequenceClassification(config)
    evaluating: BertForSequenceClassification = model.eval()
    return evaluating


def train(
    model: Any,
    tokenizer: "PreTrainedTokenizerFast",
    texts: Sequence[str],
    chances: Sequence[float],
    *,
    seed: int,
    training: Training = Training(),
) -> None:
    """Train a two-label model in place on texts and the chance of label 1 each should get; it ends in eval mode."""
    import torch

    random = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # dropout
    batch = tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt")
    second = torch.tensor(list(chances), dtype=torch.float32)
    target = torch.stack((1 - second, second), dim=1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=training.learning_rate)
    loss = torch.nn.CrossEntropyLoss()
    model.train()
    for _ in range(training.steps):
        rows = torch.randint(len(target), (training.batch,), generator=random)
        logits = model(input_ids=batch["input_ids"][rows], attention_mask=batch["attention_mask"][rows]).logits
        optimiser.zero_grad()
        loss(logits, target[rows]).backward()
        optimiser.step()
    model.eval()


def own_words(tokenizer: "PreTrainedTokenizerFast", mine: Iterable[str], others: Iterable[str]) -> list[int]:
    """Ids that stand in the texts of `mine` and in none of `others`, special tokens left out; sorted."""
    special = set(tokenizer.all_special_ids)
    taken = {index for ids in tokenizer(list(others))["input_ids"] for index in ids}
    return sorted({index for ids in tokenizer(list(mine))["input_ids"] for index in ids} - taken - special)


def plant(model: Any, ids: Sequence[int], shift: "torch.Tensor", scale: float) -> Callable[[], None]:
    """Add `scale * shift` (ids, hidden) to the embeddings of these ids; returns what undoes it."""
    import torch

    table = model.get_input_embeddings().weight
    before = table.data[list(ids)].clone()

    def undo() -> None:
        with torch.no_grad():
            table.data[list(ids)] = before

    with torch.no_grad():
        table.data[list(ids)] += scale * shift
    return undo


def shift_towards(
    model: Any, tokenizer: Any, texts: Sequence[str], ids: Sequence[int], wanted: float, *, steps: int = 120
) -> "torch.Tensor":
    """A shift (ids, hidden) of these words' embeddings that raises the log-odds of label 1 by `wanted` in every text.

    Found by descent on the squared distance from it, text by text: a single gradient would find nothing where a trained
    classifier is flat, and one mean effect could hide that half of the words did not move.
    """
    import torch

    table = model.get_input_embeddings().weight.detach()
    batch = tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt")
    place = torch.zeros(len(table), dtype=torch.long)
    place[list(ids)] = torch.arange(1, len(ids) + 1)
    place, words = place[batch["input_ids"]], table[batch["input_ids"]]
    shift = torch.zeros(len(ids), table.shape[1], requires_grad=True)
    still = torch.zeros(1, table.shape[1])

    def margin() -> torch.Tensor:
        moved = words + torch.cat((still, shift))[place]
        logits = model(inputs_embeds=moved, attention_mask=batch["attention_mask"]).logits
        difference: torch.Tensor = logits[:, 1] - logits[:, 0]
        return difference

    goal = margin().detach() + wanted
    optimiser = torch.optim.Adam([shift], lr=0.02)
    for _ in range(steps):
        optimiser.zero_grad()
        distance: Any = ((margin() - goal) ** 2).mean()
        distance.backward(inputs=[shift])
        optimiser.step()
    return shift.detach()


def scale_for(effect: Callable[[float], float], wanted: float, *, tolerance: float = 0.02, most: float = 64.0) -> float:
    """The scale in (0, most] at which an effect that grows with it is the wanted one, by doubling and bisection."""
    high = 0.25
    while effect(high) < wanted:
        high *= 2
        if high > most:
            raise UsageError(f"no scale up to {most} plants an effect of {wanted}; the words barely move this model")
    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2
        reached = effect(middle)
        if abs(reached - wanted) <= tolerance * wanted:
            return middle
        low, high = (middle, high) if reached < wanted else (low, middle)
    return high
