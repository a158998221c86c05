"""The attention block of each layer of a transformer: where values are made, where heads are joined, where the norm is.

Blocks are known by the names of their parts, not by their class, so that kin of a family are found with it; whoever
uses one must check that its parts add up to what the model itself makes (`veedor.attribution.decomposition` does).
Norms on the attention's own output (Gemma 2 and 3, OLMo 2) and fused values without a known order are not listed.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import torch

Place = Literal["before", "after"]
KNOWN = "BERT, RoBERTa, XLM-R, CamemBERT, ELECTRA, ALBERT, DistilBERT, ModernBERT, GPT-2, GPT-NeoX, GPT-J, OPT, Llama, "
KNOWN += "Mistral, Qwen 2 and 3, Gemma 1 (2 and 3 norm attention's own output), Phi"


@dataclass(frozen=True)
class Anatomy:
    """Names of a block's parts: `attention` calls the interface, `value` makes values, `out` joins the heads.

    `norm` stands before the attention or after the residual sum. `sum`, where it stands before: the module whose input
    is the block's output, or with `parallel` the one whose output the layer adds besides. `order`: where values lie in
    what `value` makes: alone, the last of three parts, the last of three in each head, or behind all other heads.
    """

    attention: str
    value: str
    out: str
    norm: str
    place: Place
    sum: str = ""
    order: Literal["alone", "last_third", "third_of_head", "tail"] = "alone"
    parallel: bool = False

    def fits(self, layer: "torch.nn.Module") -> bool:
        """Whether the layer has all of these parts."""
        paths = [self.attention, self.value, self.out, self.norm, *([self.sum] if self.sum else [])]
        return all(_part(layer, path) is not None for path in paths)


_BERT = Anatomy(
    "attention.self", "attention.self.value", "attention.output.dense", "attention.output.LayerNorm", "after"
)
_PROJECTIONS = ("self_attn", "self_attn.v_proj")
ANATOMIES = (
    _BERT,
    Anatomy("attention", "attention.value", "attention.dense", "attention.LayerNorm", "after"),
    Anatomy("attention", "attention.v_lin", "attention.out_lin", "sa_layer_norm", "after"),
    Anatomy("attn", "attn.Wqkv", "attn.Wo", "attn_norm", "before", "mlp_norm", "last_third"),
    Anatomy("attn", "attn.c_attn", "attn.c_proj", "ln_1", "before", "ln_2", "last_third"),
    Anatomy("attn", "attn.v_proj", "attn.out_proj", "ln_1", "before", "mlp", parallel=True),
    Anatomy(*_PROJECTIONS, "self_attn.out_proj", "self_attn_layer_norm", "before", "final_layer_norm"),
    Anatomy(*_PROJECTIONS, "self_attn.o_proj", "input_layernorm", "before", "post_attention_layernorm"),
    Anatomy(*_PROJECTIONS, "self_attn.dense", "input_layernorm", "before", "mlp", parallel=True),
    Anatomy("self_attn", "self_attn.qkv_proj", "self_attn.o_proj", "input_layernorm", "before",
            "post_attention_layernorm", "tail"),
    Anatomy("attention", "attention.query_key_value", "attention.dense", "input_layernorm", "before",
            "post_attention_layernorm", "third_of_head"),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Block:
    """One layer's attention block: modules of the model, looked at and never changed."""

    name: str
    attention: str
    anatomy: Anatomy
    layer: Any
    value: Any
    out: Any
    norm: Any
    sum: Any

    def values_of(self, states: "torch.Tensor", like: "torch.Tensor") -> "torch.Tensor":
        """Values made of states (b, n, d), arranged as the model's own `like`: (b, key heads, n, size)."""
        heads, size = like.shape[1], like.shape[3]
        made = self.value(states)
        if self.anatomy.order == "third_of_head":
            made = made.unflatten(-1, (heads, -1))[..., -size:]
        else:
            made = made[..., -heads * size :].unflatten(-1, (heads, size))
        found: torch.Tensor = made.transpose(1, 2)
        return found

    def out_matrices(self, heads: int) -> "torch.Tensor":
        """W_O of each head: (heads, size, d), what a head's value is multiplied by from the right."""
        weight = self.out.weight.T if _is_linear(self.out) else self.out.weight  # Conv1D stands the other way
        found: torch.Tensor = weight.unflatten(0, (heads, -1))
        return found


def blocks_of(model: Any) -> dict[str, Block]:
    """Every attention block that is understood, by the name of the module that calls the attention interface."""
    found: dict[str, Block] = {}
    for name, layer in model.named_modules():
        anatomy = next((own for own in ANATOMIES if own.fits(layer)), None)
        if anatomy is not None:
            block = _block(name, layer, _settled(anatomy, layer))
            if _is_projection(block.value) and _is_projection(block.out):
                found[block.attention] = block
    return found


def layer_of(model: Any, attention: str) -> "tuple[str, Any] | None":
    """Name and module of the layer that an attention module stands in: its nearest ancestor in a list of modules."""
    import torch

    parts = attention.split(".")
    for end in range(len(parts), 1, -1):
        if isinstance(model.get_submodule(".".join(parts[: end - 1])), torch.nn.ModuleList):
            name = ".".join(parts[:end])
            return name, model.get_submodule(name)
    return None


def first_argument(given: tuple[Any, ...], named: dict[str, Any]) -> "torch.Tensor":
    """The hidden states that a layer is called with."""
    states: torch.Tensor = given[0] if given else named["hidden_states"]
    return states


def states_in(output: Any) -> "torch.Tensor":
    """The hidden states in what a layer returns, which may be a tuple."""
    states: torch.Tensor = output[0] if isinstance(output, tuple) else output
    return states


def _settled(anatomy: Anatomy, layer: Any) -> Anatomy:
    """What a layer's own switches say: OPT's norm may stand after, GPT-NeoX may add its parts side by side."""
    from dataclasses import replace

    if getattr(layer, "do_layer_norm_before", True) is False:
        return replace(anatomy, place="after", sum="")
    if getattr(layer, "use_parallel_residual", False):
        return replace(anatomy, parallel=True, sum="mlp")
    return anatomy


def _block(name: str, layer: Any, anatomy: Anatomy) -> Block:
    return Block(
        name=name,
        attention=f"{name}.{anatomy.attention}",
        anatomy=anatomy,
        layer=layer,
        value=_part(layer, anatomy.value),
        out=_part(layer, anatomy.out),
        norm=_part(layer, anatomy.norm),
        sum=_part(layer, anatomy.sum) if anatomy.sum else None,
    )


def _part(layer: Any, path: str) -> Any:
    try:
        return layer.get_submodule(path)
    except AttributeError:
        return None


def _is_linear(module: Any) -> bool:
    import torch

    return type(module) is torch.nn.Linear


def _is_projection(module: Any) -> bool:
    from transformers.pytorch_utils import Conv1D

    return _is_linear(module) or type(module) is Conv1D
