"""Tiny models of three families with weights large enough to make attention uneven, and texts of several lengths."""

from collections.abc import Callable

import torch

from veedor.subjects import Subject
from veedor.subjects.tiny import SPECIALS, whole_word_tokenizer

TEXTS = [
    "the tall tenant met a Muslim commuter at the bus stop.",
    "a quiet neighbour sings.",
    "nobody in the whole town would ever lend a cup of sugar to the old sailor, and he knew it.",
    "the old sailor sings and the tenant sings",
    "Muslim!",
    "a tall sailor met a quiet commuter, and a tall commuter met a quiet sailor at the old town.",
]


def tokenizer(*, padding_side: str = "right", bert: bool = True):
    """Whole words; without [CLS] and [SEP] for decoders."""
    made = whole_word_tokenizer(TEXTS)
    made.padding_side = padding_side
    if not bert:
        from tokenizers.processors import TemplateProcessing

        made.backend_tokenizer.post_processor = TemplateProcessing(single="$A", special_tokens=[])
    return made


def sized(model: torch.nn.Module, *, scale: float) -> torch.nn.Module:
    """Random weights of this standard deviation, the same for the same model; norms stay as they are."""
    generator = torch.Generator().manual_seed(11)
    for name, parameter in sorted(model.named_parameters()):
        if parameter.ndim > 1 or name.endswith("bias"):
            parameter.data = scale * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def bert_model(*, scale: float = 0.3, labels: int = 2) -> torch.nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    return sized(
        BertForSequenceClassification(
            BertConfig(
                vocab_size=len(tokenizer()),
                hidden_size=16,
                num_hidden_layers=3,
                num_attention_heads=4,
                intermediate_size=24,
                max_position_embeddings=64,
                pad_token_id=SPECIALS.index("[PAD]"),
                num_labels=labels,
                problem_type="single_label_classification",
            )
        ),
        scale=scale,
    )


def gpt2_model() -> torch.nn.Module:
    from transformers import GPT2Config, GPT2ForSequenceClassification

    return sized(
        GPT2ForSequenceClassification(
            GPT2Config(
                vocab_size=len(tokenizer()),
                n_embd=16,
                n_layer=3,
                n_head=4,
                n_positions=64,
                pad_token_id=SPECIALS.index("[PAD]"),
                num_labels=2,
                problem_type="single_label_classification",
            )
        ),
        scale=0.3,
    )


def llama_model() -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForSequenceClassification

    return sized(
        LlamaForSequenceClassification(
            LlamaConfig(
                vocab_size=len(tokenizer()),
                hidden_size=16,
                num_hidden_layers=3,
                num_attention_heads=4,
                num_key_value_heads=2,
                intermediate_size=24,
                max_position_embeddings=64,
                pad_token_id=SPECIALS.index("[PAD]"),
                num_labels=2,
                problem_type="single_label_classification",
            )
        ),
        scale=0.3,
    )


def bart_model() -> torch.nn.Module:
    from transformers import BartConfig, BartForSequenceClassification

    return sized(
        BartForSequenceClassification(
            BartConfig(
                vocab_size=len(tokenizer()),
                d_model=16,
                encoder_layers=2,
                decoder_layers=2,
                encoder_attention_heads=2,
                decoder_attention_heads=2,
                encoder_ffn_dim=24,
                decoder_ffn_dim=24,
                max_position_embeddings=64,
                pad_token_id=SPECIALS.index("[PAD]"),
                bos_token_id=SPECIALS.index("[CLS]"),
                eos_token_id=SPECIALS.index("[SEP]"),
                decoder_start_token_id=SPECIALS.index("[SEP]"),
                forced_eos_token_id=SPECIALS.index("[SEP]"),
                num_labels=2,
                problem_type="single_label_classification",
            )
        ),
        scale=0.2,
    )


FAMILIES: dict[str, Callable[[], Subject]] = {
    "bert": lambda: Subject(bert_model(), tokenizer()),
    "gpt2": lambda: Subject(gpt2_model(), tokenizer(bert=False)),
    "gpt2-left": lambda: Subject(gpt2_model(), tokenizer(bert=False, padding_side="left")),
    "llama": lambda: Subject(llama_model(), tokenizer(bert=False)),
}


def eager_maps(subject: Subject, text: str) -> torch.Tensor:
    """One text's attention maps as the model itself returns them, (layers, heads, n, n), by a copy of the model."""
    import copy

    model = copy.deepcopy(subject.model)
    model.set_attn_implementation("eager")
    encoded = subject.tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        found = model(input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"], output_attentions=True)
    return torch.cat(found.attentions)
