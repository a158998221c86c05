"""Tiny configurations of text architectures, for the table of what Veedor can see of each.

`config` is what a family needs beside its vocabulary, `projection` the end of the path of the modules that weights
times values go into. Families without a classifier in transformers stand with their base model.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

PLAIN: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 80,
}
GROUPED = {**PLAIN, "num_key_value_heads": 2, "head_dim": 4}
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 80}
PAIRED: dict[str, Any] = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 80,
}
T5 = {"d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_heads": 4}
DISENTANGLED = {**PLAIN, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
BERT = "attention.output.dense"
OUT = "o_proj"


@dataclass(frozen=True)
class Family:
    """One row of the table."""

    name: str
    type: str
    config: dict[str, Any]
    projection: str = ""
    classifier: bool = True
    causal: bool = False
    returns: Literal["weights", "scores", "none"] = "weights"  # what output_attentions of its eager attention holds
    scale: float = 0.3  # standard deviation of the weights; an architecture without norms needs a smaller one
    note: str = ""


def encoder(name: str, kind: str, projection: str = BERT, **config: Any) -> Family:
    """A BERT-like encoder."""
    return Family(name, kind, {**PLAIN, **config}, projection)


def decoder(name: str, kind: str, projection: str = OUT, **config: Any) -> Family:
    """A Llama-like decoder with shared key heads."""
    return Family(name, kind, {**GROUPED, **config}, projection, causal=True)


ENCODERS = (
    encoder("BERT", "bert"),
    encoder("RoBERTa", "roberta"),
    encoder("XLM-RoBERTa", "xlm-roberta"),
    encoder("CamemBERT", "camembert"),
    Family("DistilBERT", "distilbert", {"dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24}, "attention.out_lin"),
    encoder("ALBERT", "albert", "attention.dense", embedding_size=8),
    encoder("ELECTRA", "electra", embedding_size=8),
    encoder("ModernBERT", "modernbert", "attn.Wo", local_attention=6, global_attn_every_n_layers=2),
    replace(encoder("MobileBERT", "mobilebert", embedding_size=8, intra_bottleneck_size=16), scale=0.05),
    encoder("ERNIE", "ernie"),
    encoder("Data2Vec", "data2vec-text"),
    encoder("ESM", "esm", mask_token_id=4),
    encoder("RoBERTa pre-norm", "roberta-prelayernorm"),
    encoder("DeBERTa", "deberta", **DISENTANGLED),
    encoder("DeBERTa v2 and v3", "deberta-v2", **DISENTANGLED, position_buckets=8, share_att_key=True),
    encoder("MPNet", "mpnet", "attention.attn.o"),
    encoder("MegatronBERT", "megatron-bert"),
    encoder("RoFormer", "roformer"),
    encoder("RemBERT", "rembert", input_embedding_size=8),
    Family("XLM", "xlm", {"emb_dim": 16, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 80}, "out_lin"),
    Family(
        "FlauBERT", "flaubert", {"emb_dim": 16, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 80}, "out_lin"
    ),
    Family("XLNet", "xlnet", {"d_model": 16, "n_layer": 2, "n_head": 4, "d_inner": 24}, "rel_attn_core"),
    encoder("I-BERT", "ibert"),
    encoder("LUKE", "luke", entity_vocab_size=8, entity_emb_size=8),
    replace(
        encoder("SqueezeBERT", "squeezebert", "post_attention.conv1d", embedding_size=16),
        returns="scores",
        note="returns scores before the softmax as attentions; their softmax is compared",
    ),
    encoder("BigBird, full", "big_bird", attention_type="original_full"),
    replace(
        encoder("BigBird, block-sparse", "big_bird", attention_type="block_sparse", block_size=4, num_random_blocks=1),
        note="texts of up to (5 + 2 × random blocks) blocks, which it reads by full attention; longer ones are refused",
    ),
    encoder("Nyströmformer", "nystromformer", num_landmarks=9, segment_means_seq_len=9, conv_kernel_size=3),
    Family(
        "Funnel, one block",
        "funnel",
        {"d_model": 16, "n_head": 4, "d_head": 4, "d_inner": 24, "block_sizes": [2]},
        "post_proj",
    ),
    Family(
        "Funnel", "funnel", {"d_model": 16, "n_head": 4, "d_head": 4, "d_inner": 24, "block_sizes": [1, 1]}, "post_proj"
    ),
    encoder("Longformer", "longformer", attention_window=4),
    encoder("ConvBERT", "convbert", embedding_size=8),
    encoder("CANINE", "canine"),
    encoder("YOSO", "yoso"),
    encoder("FNet", "fnet", use_tpu_fourier_optimizations=False),
    Family(
        "Reformer",
        "reformer",
        {
            "hidden_size": 16,
            "num_attention_heads": 2,
            "attention_head_size": 8,
            "feed_forward_size": 24,
            "axial_pos_embds_dim": (8, 8),
            "axial_pos_shape": (8, 8),
            "attn_layers": ["local", "lsh"],
            "is_decoder": False,
            "max_position_embeddings": 64,
        },
    ),
)
DECODERS = (
    Family("GPT-2", "gpt2", GPT2, "attn.c_proj", causal=True),
    Family("GPT (OpenAI)", "openai-gpt", GPT2, "attn.c_proj", causal=True),
    Family(
        "GPT-Neo",
        "gpt_neo",
        {
            "hidden_size": 16,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
            "max_position_embeddings": 80,
        },
        "out_proj",
        causal=True,
    ),
    Family("GPT-J", "gptj", {**GPT2, "rotary_dim": 4}, "attn.out_proj", causal=True),
    decoder("GPT-NeoX", "gpt_neox", "attention.dense"),
    Family("GPT-BigCode", "gpt_bigcode", GPT2, "attn.c_proj", causal=True),
    decoder("OPT", "opt", "self_attn.out_proj", ffn_dim=24, word_embed_proj_dim=16),
    Family("BLOOM", "bloom", {"hidden_size": 16, "n_layer": 2, "n_head": 4}, "self_attention.dense", causal=True),
    Family("Falcon, rotary", "falcon", PLAIN, "self_attention.dense", causal=True),
    Family(
        "Falcon, ALiBi",
        "falcon",
        {**PLAIN, "alibi": True, "multi_query": False},
        "self_attention.dense",
        causal=True,
        returns="none",
        note="its eager attention adds ALiBi twice, its own fused one once: weights are not compared, products are",
    ),
    Family("MPT", "mpt", {"d_model": 16, "n_heads": 4, "n_layers": 2, "max_seq_len": 80}, "attn.out_proj", causal=True),
    decoder("Llama", "llama"),
    decoder("Mistral, sliding", "mistral", sliding_window=4),
    decoder("Mixtral", "mixtral", **EXPERTS),
    decoder("Qwen2", "qwen2"),
    decoder("Qwen3", "qwen3"),
    decoder("Qwen3, experts", "qwen3_moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16),
    decoder("Gemma", "gemma"),
    decoder(
        "Gemma 2, soft-cap, sliding", "gemma2", sliding_window=4, attn_logit_softcapping=2.0, query_pre_attn_scalar=4
    ),
    decoder(
        "Gemma 3, sliding",
        "gemma3_text",
        sliding_window=4,
        layer_types=["sliding_attention", "full_attention"],
        query_pre_attn_scalar=4,
    ),
    decoder("Phi", "phi", "self_attn.dense"),
    decoder("Phi-3", "phi3"),
    decoder("gpt-oss, sinks, sliding", "gpt_oss", sliding_window=4, **EXPERTS),
    decoder("StableLM", "stablelm"),
    decoder("StarCoder2", "starcoder2"),
    decoder("OLMo 2", "olmo2"),
    decoder("SmolLM3", "smollm3"),
    decoder("ModernBERT decoder", "modernbert-decoder", "attn.Wo", local_attention=6),
    Family("Granite", "granite", GROUPED, OUT, classifier=False, causal=True),
    decoder("DiffLlama", "diffllama"),
    decoder(
        "Jamba",
        "jamba",
        attn_layer_period=2,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
        use_mamba_kernels=False,
        num_experts=2,
    ),
    Family(
        "Mamba", "mamba", {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}, classifier=False, causal=True
    ),
    Family(
        "Mamba 2",
        "mamba2",
        {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4, "num_heads": 4, "head_dim": 8, "n_groups": 1},
        classifier=False,
        causal=True,
    ),
)
ENCODER_DECODERS = (
    Family("T5", "t5", T5, "Attention.o"),
    Family("mT5", "mt5", T5, "Attention.o"),
    Family("UMT5", "umt5", T5, "Attention.o"),
    Family("BART", "bart", PAIRED, "attn.out_proj"),
    Family("mBART", "mbart", PAIRED, "attn.out_proj"),
    Family("PLBART", "plbart", PAIRED, "attn.out_proj"),
    Family("Marian", "marian", PAIRED, "attn.out_proj", classifier=False),
    Family("Pegasus", "pegasus", PAIRED, "attn.out_proj", classifier=False),
    Family("M2M-100", "m2m_100", PAIRED, "attn.out_proj", classifier=False),
)
FAMILIES = {family.name: family for family in (*ENCODERS, *DECODERS, *ENCODER_DECODERS)}
