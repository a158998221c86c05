"""Attention blocks taken apart by explicit loops in float64, head by head, from the weights: nothing of ours in it."""

import copy
from dataclasses import dataclass

import numpy as np
import torch


@dataclass
class ByHand:
    """One layer: T_i(x_j) (n, n, d), biases (n, d), and what the model itself made, (n, d)."""

    parts: np.ndarray
    bias: np.ndarray
    output: np.ndarray


def layers_of(model, ids) -> list[ByHand]:
    """Every layer of a float64 copy of a BERT, GPT-2 or Llama for one text, ids (n,)."""
    exact = copy.deepcopy(model).double().eval()
    exact.set_attn_implementation("eager")
    made: dict[int, dict[str, np.ndarray]] = {}
    kind = exact.config.model_type
    layers = {
        "bert": lambda: exact.bert.encoder.layer,
        "gpt2": lambda: exact.transformer.h,
        "llama": lambda: exact.model.layers,
    }[kind]()
    for number, layer in enumerate(layers):
        made[number] = {}
        layer.register_forward_pre_hook(lambda _, given, at=number: made[at].update(x=given[0][0].numpy()))
        if kind == "bert":
            layer.attention.output.LayerNorm.register_forward_hook(
                lambda _, given, out, at=number: made[at].update(sum=given[0][0].numpy(), y=out[0].numpy())
            )
        else:
            norm = layer.ln_2 if kind == "gpt2" else layer.post_attention_layernorm
            norm.register_forward_hook(lambda _, given, out, at=number: made[at].update(y=given[0][0].numpy()))
    with torch.no_grad():
        maps = exact(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), output_attentions=True)
    take = {"bert": bert, "gpt2": gpt2, "llama": llama}[kind]
    return [
        take(layer, made[number], maps.attentions[number][0].numpy(), exact.config)
        for number, layer in enumerate(layers)
    ]


def plain(tensor) -> np.ndarray:
    return tensor.detach().numpy()


def bert(layer, made, maps, config) -> ByHand:
    own, out = layer.attention.self, layer.attention.output
    size = config.hidden_size // config.num_attention_heads
    w_v, b_v, w_o, b_o = plain(own.value.weight), plain(own.value.bias), plain(out.dense.weight), plain(out.dense.bias)
    gamma, beta = plain(out.LayerNorm.weight), plain(out.LayerNorm.bias)
    x, n = made["x"], len(made["x"])
    parts, bias = np.zeros((n, n, x.shape[1])), np.zeros(x.shape)
    for i in range(n):
        spread = np.sqrt(made["sum"][i].var() + out.LayerNorm.eps)
        constant = b_o.copy()
        for j in range(n):
            part = x[i].copy() if i == j else np.zeros(x.shape[1])
            for h, weights in enumerate(maps):
                head = slice(h * size, (h + 1) * size)
                part += weights[i, j] * w_o[:, head] @ (w_v[head] @ x[j])
                constant += weights[i, j] * w_o[:, head] @ b_v[head]
            parts[i, j] = gamma / spread * (part - part.mean())
        bias[i] = gamma / spread * (constant - constant.mean()) + beta
    return ByHand(parts, bias, made["y"])


def gpt2(layer, made, maps, config) -> ByHand:
    width, size = config.hidden_size, config.hidden_size // config.num_attention_heads
    w_v, b_v = plain(layer.attn.c_attn.weight)[:, 2 * width :].T, plain(layer.attn.c_attn.bias)[2 * width :]
    w_o, b_o = plain(layer.attn.c_proj.weight).T, plain(layer.attn.c_proj.bias)
    gamma, beta = plain(layer.ln_1.weight), plain(layer.ln_1.bias)
    x, n = made["x"], len(made["x"])
    parts, bias = np.zeros((n, n, width)), np.tile(b_o, (n, 1))
    for i in range(n):
        parts[i, i] += x[i]
        for j in range(n):
            linear = gamma * (x[j] - x[j].mean()) / np.sqrt(x[j].var() + layer.ln_1.eps)
            for h, weights in enumerate(maps):
                head = slice(h * size, (h + 1) * size)
                parts[i, j] += weights[i, j] * w_o[:, head] @ (w_v[head] @ linear)
                bias[i] += weights[i, j] * w_o[:, head] @ (w_v[head] @ beta + b_v[head])
    return ByHand(parts, bias, made["y"])


def llama(layer, made, maps, config) -> ByHand:
    size = config.hidden_size // config.num_attention_heads
    shared = config.num_attention_heads // config.num_key_value_heads
    w_v, w_o = plain(layer.self_attn.v_proj.weight), plain(layer.self_attn.o_proj.weight)
    norm = layer.input_layernorm
    x, n = made["x"], len(made["x"])
    parts = np.zeros((n, n, x.shape[1]))
    for i in range(n):
        parts[i, i] += x[i]
        for j in range(n):
            linear = plain(norm.weight) * x[j] / np.sqrt((x[j] ** 2).mean() + norm.variance_epsilon)
            for h, weights in enumerate(maps):
                values = w_v[(h // shared) * size : (h // shared + 1) * size] @ linear
                parts[i, j] += weights[i, j] * w_o[:, h * size : (h + 1) * size] @ values
    return ByHand(parts, np.zeros(x.shape), made["y"])


def mixed(layers: list[ByHand], measure: str) -> np.ndarray:
    """The product of all layers' shares, (n, n); rows in which nothing contributes stay 0."""
    flow = None
    for layer in layers:
        n = len(layer.output)
        shares = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                part = layer.parts[i, j]
                if measure == "norm_rollout":
                    shares[i, j] = np.sqrt((part**2).sum())
                else:
                    shares[i, j] = max(0.0, np.abs(layer.output[i]).sum() - np.abs(layer.output[i] - part).sum())
            if shares[i].sum() > 0:
                shares[i] /= shares[i].sum()
        flow = shares if flow is None else shares @ flow
    return flow
