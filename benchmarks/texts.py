"""What the benchmarks run on: a random encoder of BERT-base's shape, and the texts of a file."""

import csv
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veedor.subjects import Encoding, Subject

WORDS = [f"w{number}" for number in range(3000)]


def random_encoder(*, layers: int = 12, width: int = 768, heads: int = 12, window: int = 512) -> "Subject":
    """A BERT of this shape with random weights and a tokenizer of whole words."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from veedor.subjects import Subject
    from veedor.subjects.tiny import whole_word_tokenizer

    tokenizer = whole_word_tokenizer([" ".join(WORDS)], window=window)
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        "max_position_embeddings": window,
        "num_labels": 2,
    }
    return Subject(BertForSequenceClassification(BertConfig(**shape)), tokenizer, name="random encoder")


def random_texts(number: int, shortest: int, longest: int, *, seed: int = 0) -> list[str]:
    """Texts whose tokens, special ones included, number between shortest and longest."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(shortest, longest) - 2)) for _ in range(number)]


def texts_of(file: Path) -> list[str]:
    """The column `text` of a CSV file."""
    with file.open(encoding="utf-8", newline="") as handle:
        return [row["text"] for row in csv.DictReader(handle)]


def short(
    subject: "Subject", texts: list[str], number: int, *, shortest: int = 8, longest: int = 64
) -> list["Encoding"]:
    """The first texts of a moderate length, encoded."""
    found = [own for own in subject.encode(texts) if shortest <= len(own.ids) <= longest]
    if len(found) < number:
        raise SystemExit(
            f"only {len(found)} texts of {shortest} to {longest} tokens, expected {number}; give a larger file"
        )
    return found[:number]


def of_length(subject: "Subject", texts: list[str], number: int, tokens: int) -> list["Encoding"]:
    """Texts of exactly this many tokens, put together from those of the file and cut."""
    joined, encodings = list(texts), []
    while len(encodings) < number:
        text = ""
        while len(subject.encode([text])[0].ids) < tokens:
            if not joined:
                raise SystemExit(f"the file holds too little text for {number} texts of {tokens} tokens")
            text = f"{text} {joined.pop(0)}".strip()
        encodings.append(subject.encode([cut_to(subject, text, tokens)])[0])
    return encodings


def cut_to(subject: "Subject", text: str, tokens: int) -> str:
    """The text's beginning that has at most so many tokens."""
    encoding = subject.encode([text])[0]
    last = max(end for _, end in encoding.offsets[: tokens - 1])
    return text[:last]


def sharpened(subject: "Subject", factor: float) -> "Subject":
    """The same classifier with its query projections multiplied: attention that changes fast along a path."""
    import copy

    import torch

    from veedor.subjects import Subject

    model = copy.deepcopy(subject.model)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".query." in name:
                parameter.mul_(factor)
    return Subject(model, subject.tokenizer, name=f"{subject.name}, queries × {factor:g}")
