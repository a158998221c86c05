"""Tiny classifiers of many families, with random weights large enough that a wrong position or row is plain to see."""

from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForSequenceClassification

from veedor.subjects import Subject
from veedor.subjects.tiny import SPECIALS, whole_word_tokenizer

TEXTS = [
    "the tall tenant met a Muslim commuter at the bus stop.",
    "a quiet neighbour sings.",
    "nobody in the whole town would ever lend a cup of sugar to the old sailor, and he knew it.",
    "Muslim!",
    "the old sailor sings and the tenant sings",
]
PAD, CLS, SEP = (SPECIALS.index(name) for name in ("[PAD]", "[CLS]", "[SEP]"))
SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 66,
}
SEVERAL: dict[str, dict[str, Any]] = {
    "bert": SMALL,
    "roberta": SMALL,
    "xlm-roberta": SMALL,
    "camembert": SMALL,
    "distilbert": {"dim": 16, "n_layers": 3, "n_heads": 4, "hidden_dim": 24, "max_position_embeddings": 66},
    "albert": {**SMALL, "embedding_size": 8, "num_hidden_groups": 1},
    "electra": {**SMALL, "embedding_size": 8},
    "modernbert": {**SMALL, "local_attention": 6, "global_attn_every_n_layers": 2},
    "modernbert-mean": {**SMALL, "local_attention": 6, "classifier_pooling": "mean"},
    "deberta-v2": {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
    "mpnet": SMALL,
    "gpt2": {"n_embd": 16, "n_layer": 3, "n_head": 4, "n_positions": 66},
    "opt": {**SMALL, "ffn_dim": 24, "word_embed_proj_dim": 16},
    "llama": {**SMALL, "num_key_value_heads": 2},
    "mistral": {**SMALL, "num_key_value_heads": 2, "sliding_window": 4},
    "qwen2": {**SMALL, "num_key_value_heads": 2},
    "gemma2": {**SMALL, "num_key_value_heads": 2, "head_dim": 4, "sliding_window": 4, "attn_logit_softcapping": 2.0},
    "gpt_neox": SMALL,
    "bloom": {"hidden_size": 16, "n_layer": 3, "n_head": 4},
    "bart": {
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "max_position_embeddings": 66,
        "scale_embedding": True,
    },
    "fnet": {**SMALL, "use_tpu_fourier_optimizations": False},
    "longformer": {**SMALL, "attention_window": 4, "max_position_embeddings": 70},
    "t5": {"d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_heads": 4},
}
DECODERS = ("gpt2", "opt", "llama", "mistral", "qwen2", "gemma2", "gpt_neox", "bloom")
ENCODER_DECODERS = ("bart", "t5")


def tokenizer(family: str = "bert", *, padding_side: str = "right", **settings: Any) -> Any:
    """Whole words; decoders get no [CLS] and [SEP]."""
    made = whole_word_tokenizer(TEXTS)
    made.padding_side = padding_side
    for name, value in settings.items():
        setattr(made, name, value)
    if family in DECODERS:
        from tokenizers.processors import TemplateProcessing

        made.backend_tokenizer.post_processor = TemplateProcessing(single="$A", special_tokens=[])
    return made


def model(family: str, *, labels: int = 2, scale: float = 0.3, **settings: Any) -> Any:
    """A classifier of the family with fixed random weights; attention as transformers chooses (sdpa where it can)."""
    marks = {"pad_token_id": PAD, "bos_token_id": CLS, "eos_token_id": SEP}
    if family in ENCODER_DECODERS:
        marks |= {"decoder_start_token_id": CLS}
    config = AutoConfig.for_model(
        family.removesuffix("-mean"),
        **{
            "vocab_size": len(whole_word_tokenizer(TEXTS)),
            "num_labels": labels,
            **SEVERAL[family],
            **marks,
            **settings,
        },
    )
    made = AutoModelForSequenceClassification.from_config(config)
    generator = torch.Generator().manual_seed(11)
    for name, parameter in sorted(made.named_parameters()):
        if parameter.ndim > 1 or name.endswith("bias"):
            parameter.data = scale * torch.randn(parameter.shape, generator=generator)
    return made.eval()


def subject(family: str, *, padding_side: str = "right", head: str = "auto", **settings: Any) -> Subject:
    return Subject(model(family, **settings), tokenizer(family, padding_side=padding_side), head=head)


def alone(of: Subject, text: str) -> torch.Tensor:
    """What the model itself says to one text without padding, (outputs,)."""
    with torch.no_grad():
        return of.model(**of.tokenizer(text, return_tensors="pt")).logits[0]


def answers(of: Subject, texts: list[str], *, size: int = 32, embedded: bool = False) -> torch.Tensor:
    """What the subject says to each text, in batches, (n, outputs)."""
    found: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        for batch in of.batches(of.encode(texts), size=size):
            logits = of.logits_from_embeddings(of.embed(batch), batch) if embedded else of.logits(batch)
            found.update(zip(batch.rows, logits, strict=True))
    return torch.stack([found[row] for row in range(len(texts))])


def snapshot(of: Any) -> tuple[dict[str, torch.Tensor], str, list[Any], list[int], list[bool]]:
    """All that must be as before: weights, config, attention of every part, numbers of hooks, gradient flags."""
    parts = [module for module in of.modules() if isinstance(module, transformers.PreTrainedModel)]
    return (
        {name: tensor.clone() for name, tensor in of.state_dict().items()},
        of.config.to_json_string(use_diff=False),
        [part.config._attn_implementation for part in parts],
        [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in of.modules()],
        [parameter.requires_grad for parameter in of.parameters()],
    )


def assert_same(before: tuple, after: tuple) -> None:
    assert before[0].keys() == after[0].keys()
    assert all(torch.equal(tensor, after[0][name]) for name, tensor in before[0].items())
    assert before[1:] == after[1:]
