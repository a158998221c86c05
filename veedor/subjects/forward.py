"""One forward pass of a classifier on a padded batch, with the head applied where it belongs.

Encoders are called as they are. The heads of decoders and encoder-decoders find the row they read by looking at ids,
which fails for embeddings, for padding with the end-of-text token, and for texts that hold it; so the stack is run
first and the head is applied at a row that is given. Nothing here knows labels.
"""

from typing import TYPE_CHECKING, Any

from veedor.subjects.anatomy import text_config

if TYPE_CHECKING:
    import torch

    from veedor.subjects.encoding import Batch


def head_is_apart(model: Any) -> bool:
    """Whether the classifier's head can be applied at a row of our choice."""
    return hasattr(model, "score") or hasattr(model, "classification_head")


def whole(model: Any, batch: "Batch", **given: "torch.Tensor") -> "torch.Tensor":
    """The model's own forward; `given` is input_ids or inputs_embeds. (b, outputs)."""
    if batch.position_ids is not None:
        given["position_ids"] = batch.position_ids
    logits: torch.Tensor = model(attention_mask=batch.mask, **given).logits
    return logits


def at_row(model: Any, embeddings: "torch.Tensor", batch: "Batch", row: "torch.Tensor") -> "torch.Tensor":
    """The stack on embeddings (b, n, d), then the head at each text's own row (b,). (b, outputs)."""
    import torch

    given = {"inputs_embeds": embeddings, "attention_mask": batch.mask, "use_cache": False}
    if model.config.is_encoder_decoder:
        start = torch.full_like(batch.ids[:, :1], text_config(model).decoder_start_token_id)
        begun = torch.cat((model.get_input_embeddings()(start), embeddings[:, :-1]), dim=1)
        given["decoder_inputs_embeds"] = begun  # the decoder reads the text, moved by one
    states = model.base_model(**given)[0]
    read = states[torch.arange(len(states), device=states.device), row]
    logits: torch.Tensor = model.score(read) if hasattr(model, "score") else model.classification_head(read)
    return logits
