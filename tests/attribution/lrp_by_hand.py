"""Layer-wise relevance propagation written out: relevance goes from layer to layer by division and multiplication.

Nothing is differentiated and nothing is shared with the library. Every rule is the paper's proposition, in float64 and
token by token, with epsilon → 0. `variant` is "attn_lrp" or "cp_lrp". Arrays: x (n, d), weights (out, in).
"""

from math import erf, pi, sqrt

import numpy as np

HEADS = 4


def arrays(model):
    return {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}


# Rules


def epsilon_rule(x, weight, bias, relevance):
    """z_o = Σ_i W_oi x_i + b_o: input i gets W_oi x_i / z_o of output o's relevance; the bias keeps its part."""
    found = np.zeros_like(x)
    for token in range(len(x)):
        for output in range(len(weight)):
            parts = weight[output] * x[token]
            found[token] += parts / (parts.sum() + bias[output]) * relevance[token, output]
    return found


def residual_rule(terms, relevance):
    """Each term of a sum gets its part of it."""
    total = sum(terms)
    return [term / total * relevance for term in terms]


def layer_norm_rule(x, weight, bias, relevance, eps):
    """Proposition 3.4: the division keeps relevance; taking off the mean and γ, β are linear."""
    normed = standardise(x, eps)
    passed = normed * weight / (normed * weight + bias) * relevance
    n = x.shape[1]
    return epsilon_rule(x, np.eye(n) - np.full((n, n), 1 / n), np.zeros(n), passed)


def softmax_rule(scores, weights, relevance):
    """Proposition 3.1: R_i = x_i (R_i − s_i Σ_j R_j); masked keys have no part."""
    seen = weights > 0
    plain = np.where(seen, scores, 0.0)
    return plain * (relevance - weights * relevance.sum(axis=1, keepdims=True))


def attention_rule(queries, keys, values, scale, causal, relevance, variant):
    """One head, (n, d) each. Proposition 3.3 for both products: each pair's part of the result, half to each factor."""
    scores = queries @ keys.T * scale
    weights = masked_softmax(scores, causal)
    mixed = weights @ values
    to_weights, to_values = np.zeros_like(weights), np.zeros_like(values)
    share = 2 if variant == "attn_lrp" else 1
    for j, i in np.ndindex(*weights.shape):
        parts = weights[j, i] * values[i] / (share * mixed[j]) * relevance[j]
        to_values[i] += parts
        to_weights[j, i] = parts.sum()
    to_queries, to_keys = np.zeros_like(queries), np.zeros_like(keys)
    if variant == "cp_lrp":
        return to_queries, to_keys, to_values
    to_scores = softmax_rule(scores, weights, to_weights)
    for j, i in np.ndindex(*weights.shape):
        parts = queries[j] * keys[i] * scale / (2 * scores[j, i]) * to_scores[j, i]
        to_queries[j] += parts
        to_keys[i] += parts
    return to_queries, to_keys, to_values


def gate_rule(relevance, variant):
    """A gated product: half to the activated factor and half to the other, or all to the other."""
    return (relevance / 2, relevance / 2) if variant == "attn_lrp" else (0 * relevance, relevance)


# Values


def centre(x):
    return x - x.mean(axis=-1, keepdims=True)


def standardise(x, eps):
    return centre(x) / np.sqrt(x.var(axis=-1, keepdims=True) + eps)


def root_mean_square(x, weight, eps):
    return weight * x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)


def masked_softmax(scores, causal):
    hidden = np.triu(np.ones_like(scores), 1).astype(bool) if causal else np.zeros_like(scores, dtype=bool)
    raised = np.where(hidden, -np.inf, scores)
    powers = np.exp(raised - raised.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def linear(x, weight, bias=0.0):
    return x @ weight.T + bias


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(erf)(x / sqrt(2)))


def gelu_new(x):
    return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + np.exp(-x))


def heads(x, number):
    """(n, number · d) -> number of (n, d)."""
    return np.split(x, number, axis=1)


def rotation(position, size, base=10000.0):
    """The matrix that turns one head's query or key at this position."""
    half = size // 2
    angles = position * base ** (-np.arange(half) * 2 / size)
    turned = np.zeros((size, size))
    for at, angle in enumerate(angles):
        turned[at, at] = turned[at + half, at + half] = np.cos(angle)
        turned[at, at + half], turned[at + half, at] = -np.sin(angle), np.sin(angle)
    return turned


# Parts of models: each gives its value and a function from the relevance of the value to that of its input


def linear_part(x, weight, bias=None):
    shift = np.zeros(len(weight)) if bias is None else bias
    return linear(x, weight, shift), lambda relevance: epsilon_rule(x, weight, shift, relevance)


def self_attention(queries, keys, values, *, key_heads, causal, variant):
    """All heads; keys and values of fewer heads are shared by neighbouring queries."""
    parted = heads(queries, HEADS), heads(keys, key_heads), heads(values, key_heads)
    scale = parted[0][0].shape[1] ** -0.5
    reads = [head * key_heads // HEADS for head in range(HEADS)]
    mixed = [
        masked_softmax(parted[0][head] @ parted[1][at].T * scale, causal) @ parted[2][at]
        for head, at in enumerate(reads)
    ]

    def back(relevance):
        to_queries, to_keys, to_values = [], [0.0] * key_heads, [0.0] * key_heads
        for head, (at, own) in enumerate(zip(reads, heads(relevance, HEADS), strict=True)):
            query, key, value = attention_rule(
                parted[0][head], parted[1][at], parted[2][at], scale, causal, own, variant
            )
            to_queries.append(query)
            to_keys[at], to_values[at] = to_keys[at] + key, to_values[at] + value
        return tuple(np.concatenate(own, axis=1) for own in (to_queries, to_keys, to_values))

    return np.concatenate(mixed, axis=1), back


def turned(x, number):
    """Rotary positions of every head, and the way back."""
    size = x.shape[1] // number
    matrices = [np.kron(np.eye(number), rotation(position, size)) for position in range(len(x))]
    none = np.zeros(x.shape[1])
    value = np.stack([matrix @ own for matrix, own in zip(matrices, x, strict=True)])

    def back(relevance):
        rows = [epsilon_rule(x[t : t + 1], matrices[t], none, relevance[t : t + 1]) for t in range(len(x))]
        return np.concatenate(rows)

    return value, back


# Whole models: scores of every token for the log-odds of label 1 of two, or for `logit`'s raw logit


def start(logits, logit):
    """Relevance of the logits: log-odds are z_1 − z_0."""
    if logit is None:
        return np.array([[-logits[0, 0], logits[0, 1]]])
    return np.where(np.arange(logits.shape[1]) == logit, logits, 0.0)


def bert(model, ids, variant, logit=None):
    w, eps = arrays(model), model.config.layer_norm_eps
    n = len(ids)
    parts = [
        w["bert.embeddings.word_embeddings.weight"][ids],
        w["bert.embeddings.position_embeddings.weight"][:n],
        w["bert.embeddings.token_type_embeddings.weight"][[0] * n],
    ]

    def norm(x, name):
        weight, bias = w[f"{name}.weight"], w[f"{name}.bias"]
        return standardise(x, eps) * weight + bias, lambda r: layer_norm_rule(x, weight, bias, r, eps)

    def dense(x, name):
        return linear_part(x, w[f"{name}.weight"], w[f"{name}.bias"])

    def block(x, name):
        query, from_query = dense(x, f"{name}.attention.self.query")
        key, from_key = dense(x, f"{name}.attention.self.key")
        value, from_value = dense(x, f"{name}.attention.self.value")
        mixed, from_mixed = self_attention(query, key, value, key_heads=HEADS, causal=False, variant=variant)
        added, from_added = dense(mixed, f"{name}.attention.output.dense")
        middle, from_middle = norm(added + x, f"{name}.attention.output.LayerNorm")
        inner, from_inner = dense(middle, f"{name}.intermediate.dense")
        outer, from_outer = dense(gelu(inner), f"{name}.output.dense")
        result, from_result = norm(outer + middle, f"{name}.output.LayerNorm")

        def back(relevance):
            to_outer, straight = residual_rule([outer, middle], from_result(relevance))
            to_added, passed = residual_rule([added, x], from_middle(straight + from_inner(from_outer(to_outer))))
            to_query, to_key, to_value = from_mixed(from_added(to_added))
            return passed + from_query(to_query) + from_key(to_key) + from_value(to_value)

        return result, back

    x, from_embeddings = norm(sum(parts), "bert.embeddings.LayerNorm")
    backs = []
    for layer in range(model.config.num_hidden_layers):
        x, back = block(x, f"bert.encoder.layer.{layer}")
        backs.append(back)
    pooled, from_pooled = dense(x[:1], "bert.pooler.dense")
    logits, from_logits = dense(np.tanh(pooled), "classifier")
    relevance = np.zeros_like(x)
    relevance[:1] = from_pooled(from_logits(start(logits, logit)))
    for back in reversed(backs):
        relevance = back(relevance)
    return residual_rule(parts, from_embeddings(relevance))[0].sum(axis=1), logits[0]


def gpt2(model, ids, variant, logit=None):
    w, eps = arrays(model), model.config.layer_norm_epsilon
    parts = [w["transformer.wte.weight"][ids], w["transformer.wpe.weight"][: len(ids)]]

    def norm(x, name):
        weight, bias = w[f"{name}.weight"], w[f"{name}.bias"]
        return standardise(x, eps) * weight + bias, lambda r: layer_norm_rule(x, weight, bias, r, eps)

    def dense(x, name):  # stored the other way round
        return linear_part(x, w[f"{name}.weight"].T, w[f"{name}.bias"])

    def block(x, name):
        normed, from_normed = norm(x, f"{name}.ln_1")
        projected, from_projected = dense(normed, f"{name}.attn.c_attn")
        query, key, value = np.split(projected, 3, axis=1)
        mixed, from_mixed = self_attention(query, key, value, key_heads=HEADS, causal=True, variant=variant)
        added, from_added = dense(mixed, f"{name}.attn.c_proj")
        middle = x + added
        second, from_second = norm(middle, f"{name}.ln_2")
        inner, from_inner = dense(second, f"{name}.mlp.c_fc")
        outer, from_outer = dense(gelu_new(inner), f"{name}.mlp.c_proj")

        def back(relevance):
            straight, to_outer = residual_rule([middle, outer], relevance)
            to_middle = straight + from_second(from_inner(from_outer(to_outer)))
            passed, to_added = residual_rule([x, added], to_middle)
            to_projected = np.concatenate(from_mixed(from_added(to_added)), axis=1)
            return passed + from_normed(from_projected(to_projected))

        return middle + outer, back

    x, backs = sum(parts), []
    for layer in range(model.config.n_layer):
        x, back = block(x, f"transformer.h.{layer}")
        backs.append(back)
    last, from_last = norm(x, "transformer.ln_f")
    logits, from_logits = linear_part(last[-1:], w["score.weight"])
    relevance = np.zeros_like(x)
    relevance[-1:] = from_logits(start(logits, logit))
    relevance = from_last(relevance)
    for back in reversed(backs):
        relevance = back(relevance)
    return residual_rule(parts, relevance)[0].sum(axis=1), logits[0]


def llama(model, ids, variant, logit=None):
    w, eps, key_heads = arrays(model), model.config.rms_norm_eps, model.config.num_key_value_heads

    def norm(x, name):  # proposition 3.4: nothing is taken off and nothing added, so that relevance stays where it is
        return root_mean_square(x, w[f"{name}.weight"], eps), lambda relevance: relevance

    def dense(x, name):
        return linear_part(x, w[f"{name}.weight"])

    def block(x, name):
        normed, from_normed = norm(x, f"{name}.input_layernorm")
        query, from_query = dense(normed, f"{name}.self_attn.q_proj")
        key, from_key = dense(normed, f"{name}.self_attn.k_proj")
        value, from_value = dense(normed, f"{name}.self_attn.v_proj")
        query, from_turned_query = turned(query, HEADS)
        key, from_turned_key = turned(key, key_heads)
        mixed, from_mixed = self_attention(query, key, value, key_heads=key_heads, causal=True, variant=variant)
        added, from_added = dense(mixed, f"{name}.self_attn.o_proj")
        middle = x + added
        second, from_second = norm(middle, f"{name}.post_attention_layernorm")
        gate, from_gate = dense(second, f"{name}.mlp.gate_proj")
        up, from_up = dense(second, f"{name}.mlp.up_proj")
        outer, from_outer = dense(silu(gate) * up, f"{name}.mlp.down_proj")

        def back(relevance):
            straight, to_outer = residual_rule([middle, outer], relevance)
            to_gate, to_up = gate_rule(from_outer(to_outer), variant)
            to_middle = straight + from_second(from_gate(to_gate) + from_up(to_up))
            passed, to_added = residual_rule([x, added], to_middle)
            to_query, to_key, to_value = from_mixed(from_added(to_added))
            to_normed = from_query(from_turned_query(to_query)) + from_key(from_turned_key(to_key))
            return passed + from_normed(to_normed + from_value(to_value))

        return middle + outer, back

    x, backs = w["model.embed_tokens.weight"][ids], []
    for layer in range(model.config.num_hidden_layers):
        x, back = block(x, f"model.layers.{layer}")
        backs.append(back)
    last, from_last = norm(x, "model.norm")
    logits, from_logits = linear_part(last[-1:], w["score.weight"])
    relevance = np.zeros_like(x)
    relevance[-1:] = from_logits(start(logits, logit))
    relevance = from_last(relevance)
    for back in reversed(backs):
        relevance = back(relevance)
    return relevance.sum(axis=1), logits[0]


PROPAGATE = {"bert": bert, "gpt2": gpt2, "llama": llama}
