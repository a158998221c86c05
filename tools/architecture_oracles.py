"""What a model itself says of its attention, found without Veedor: the oracles of the table of architectures."""

import copy
import inspect
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

from tools.architecture_configs import Family
from veedor.subjects.anatomy import position_offset, positions
from veedor.subjects.tiny import SPECIALS

PAD, CLS, SEP = (SPECIALS.index(name) for name in ("[PAD]", "[CLS]", "[SEP]"))
VOCABULARY = 50
LENGTHS = (9, 6, 3)
Given = dict[str, torch.Tensor]


def model_of(family: Family, *, vocabulary: int = VOCABULARY) -> Any:
    """A model of the family with fixed random weights, as transformers makes it from its config."""
    marks = {"pad_token_id": PAD, "bos_token_id": CLS, "eos_token_id": SEP, "decoder_start_token_id": CLS}
    config = AutoConfig.for_model(family.type, vocab_size=vocabulary, num_labels=2, **{**family.config, **marks})
    made = (AutoModelForSequenceClassification if family.classifier else AutoModel).from_config(config)
    generator = torch.Generator().manual_seed(11)
    for name, parameter in sorted(made.named_parameters()):
        if parameter.ndim > 1 or name.endswith("bias"):
            parameter.data = family.scale * torch.randn(parameter.shape, generator=generator)
    return made.eval()


def batch_of(model: Any, family: Family, *, left: bool = False) -> Given:
    """Three texts of different lengths, padded on one side; with position ids where padded on the left."""
    generator = torch.Generator().manual_seed(5)
    ids = torch.full((len(LENGTHS), max(LENGTHS)), PAD)
    mask = torch.zeros_like(ids)
    for row, length in enumerate(LENGTHS):
        place = slice(-length, None) if left else slice(0, length)
        ids[row, place] = torch.randint(len(SPECIALS), VOCABULARY, (length,), generator=generator)
        ids[row, place][-1] = SEP
        mask[row, place] = 1
    given = {"input_ids": ids, "attention_mask": mask}
    if left and "position_ids" in inspect.signature(model.forward).parameters:
        offset = position_offset(model) or 0
        given["position_ids"] = positions(ids, offset) if offset else (mask.cumsum(dim=1) - 1).clamp(min=0)
    if model.config.is_encoder_decoder and not family.classifier:
        given["decoder_input_ids"] = ids.roll(1, dims=1)
    return given


def eager(model: Any) -> Any:
    """A copy of the model with eager attention."""
    own = copy.deepcopy(model)
    if own._can_set_attn_implementation():
        own.set_attn_implementation("eager")
    else:
        own.config._attn_implementation_internal = "eager"
    if getattr(own.config, "attention_type", None) == "block_sparse":
        own.base_model.set_attention_type("original_full")  # what it goes over to by itself
    return own


def eager_maps(model: Any, family: Family, given: Given) -> list[torch.Tensor]:
    """Each layer's maps (b, heads, n, m) in the order of the calls, as eager attention returns them."""
    with torch.no_grad():
        found = eager(model)(**given, output_attentions=True)
    maps = list(found.get("attentions") or ())
    if "encoder_attentions" in found:
        maps = list(found.encoder_attentions)
        for pair in zip(found.decoder_attentions, found.cross_attentions, strict=True):
            maps.extend(pair)
    return [own.softmax(dim=-1) for own in maps] if family.returns == "scores" else maps


def projected(model: Any, family: Family, given: Given) -> list[torch.Tensor]:
    """What enters each layer's output projection in an untouched copy of the model, (b, n, heads * d)."""
    own = copy.deepcopy(model)
    found: list[torch.Tensor] = []
    for name, module in own.named_modules():
        if family.projection == "rel_attn_core" and hasattr(module, "rel_attn_core"):
            module.rel_attn_core = noting(module.rel_attn_core, found)
        elif name.endswith(family.projection):
            module.register_forward_hook(lambda _, entered, __: found.append(entered[0]))
    with torch.no_grad():
        own(**given)
    n = given["input_ids"].shape[1]
    return [states if states.shape[1] == n else states.transpose(1, 2) for states in found]


def noting(core: Any, found: list[torch.Tensor]) -> Any:
    """XLNet projects by a parameter, not by a module: its attention's own result (n, b, heads, d) is noted."""

    def call(*args: Any, **options: Any) -> torch.Tensor:
        made: torch.Tensor = core(*args, **options)
        found.append(made.transpose(0, 1).flatten(2))
        return made

    return call
