"""What the attribution engine costs, as ratios against a plain forward pass or a public peer in the same run.

    python benchmarks/engine.py rollout
    python benchmarks/engine.py integrated --model FOLDER --texts FILE [--model FOLDER --texts FILE]
    python benchmarks/engine.py flow
    python benchmarks/engine.py backward
    python benchmarks/engine.py methods --model FOLDER --texts FILE

Two threads, median of five after a warm-up, interleaved; memory in fresh processes. Prints Markdown tables.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import torch  # noqa: E402

from benchmarks import integrated, peers  # noqa: E402
from benchmarks import texts as given  # noqa: E402
from benchmarks.timing import memory_of, once, peak_over, seconds_of, table  # noqa: E402
from veedor.attribution import Question, explain, reach  # noqa: E402
from veedor.subjects import Subject  # noqa: E402

if TYPE_CHECKING:
    from veedor.subjects import Encoding

LENGTHS = (512, 2048)
LONG = 8192


def plain(subject: Subject, encodings: "list[Encoding]", *, size: int = 32) -> None:
    """The model's own forward pass over batches of similar length, without gradients."""
    with torch.no_grad():
        for batch in subject.batches(encodings, size=size):
            subject.model(input_ids=batch.ids, attention_mask=batch.mask)


def rows(subject: Subject, encodings: "list[Encoding]") -> None:
    """Rollout of the row that the head reads."""
    explain(subject, encodings, 1, method="rollout")


def columns(subject: Subject, encodings: "list[Encoding]") -> None:
    """What one word of each text reaches: rollout's columns."""
    reach(Question(subject, encodings, 1, "rollout"), [[1, 2]] * len(encodings))


def rollout(args: argparse.Namespace) -> None:
    """Rollout on a 12-layer, 768-wide encoder: seconds and memory over a plain forward pass."""
    found: list[tuple[object, ...]] = []
    for tokens in LENGTHS:
        subject = given.random_encoder(window=tokens)
        encodings = subject.encode(given.random_texts(1, tokens, tokens))
        ways: dict[str, Callable[[], object]] = {
            "plain": lambda s=subject, e=encodings: plain(s, e),
            "rows": lambda s=subject, e=encodings: rows(s, e),
            "columns": lambda s=subject, e=encodings: columns(s, e),
        }
        seconds = seconds_of(ways, repeats=args.repeats)
        memory = {way: memory_of(way, str(tokens)) for way in ways}
        kept = 2 * 12 * 768 * tokens * 4 / 2**20
        found.extend(
            (way, f"1 × {tokens}", seconds[way] / seconds["plain"], memory[way], 1.2 * memory["plain"] + kept + 20)
            for way in ("rows", "columns")
        )
    subject = given.random_encoder()
    encodings = subject.encode(given.random_texts(256, 16, 64))
    seconds = seconds_of(
        {
            "plain": lambda: plain(subject, encodings),
            "rows": lambda: rows(subject, encodings),
            "columns": lambda: columns(subject, encodings),
        },
        repeats=args.repeats,
    )
    found.extend((way, "256 × 16-64", seconds[way] / seconds["plain"], "", "") for way in ("rows", "columns"))
    found.extend((way, f"1 × {LONG}", "", memory_of(way, str(LONG)), "2,048") for way in ("rows", "columns"))
    table(
        "Rollout, 12 layers × 768",
        ("what", "texts × tokens", "time / plain forward", "MiB over the model", "allowed MiB"),
        found,
    )


def memory(args: argparse.Namespace) -> None:
    """Peak MiB over the model for one way and length: called in a process of its own."""
    tokens = int(args.tokens)
    subject = given.random_encoder(window=tokens)
    encodings = subject.encode(given.random_texts(1, tokens, tokens))
    ways = {"plain": plain, "rows": rows, "columns": columns}
    plain(subject, subject.encode(given.random_texts(1, 64, 64)))
    ways[args.way](subject, subject.encode(given.random_texts(1, 64, 64)))
    print(json.dumps(peak_over(lambda: ways[args.way](subject, encodings))))


def pairs(args: argparse.Namespace) -> Iterator[tuple[Subject, list[str]]]:
    """The models and texts that were named."""
    if not args.model or len(args.model) != len(args.texts or []):
        raise SystemExit("name at least one --model FOLDER, each with its --texts FILE (a CSV with a column text)")
    for folder, file in zip(args.model, args.texts, strict=True):
        yield Subject.load(folder, name=Path(folder).name), given.texts_of(Path(file))


def integrated_gradients(args: argparse.Namespace) -> None:
    """Integrated gradients against captum on short texts, texts of 128 tokens, and a sharpened model."""
    found = []
    for subject, lines in pairs(args):
        cases = [
            (f"{subject.name}, 8-64 tokens", subject, given.short(subject, lines, args.short), args.nodes),
            (f"{subject.name}, 128 tokens", subject, given.of_length(subject, lines, args.long, 128), args.nodes),
        ]
        sharp = given.sharpened(subject, 3.0)
        cases.append((f"{subject.name}, queries × 3", sharp, given.short(subject, lines, args.sharp), 400))
        for name, model, encodings, nodes in cases:
            found.append(
                integrated.compare(name, model, encodings, nodes=nodes, cache=args.cache, repeats=args.repeats)
            )
            integrated.report(found[-1:])
    integrated.report(found)


def flow(args: argparse.Namespace) -> None:
    """Attention flow of one row against networkx, 12 layers and 64 tokens, and alone at 256."""
    from veedor.attribution.flow import flow_row

    found: list[tuple[object, ...]] = []
    for name, maps in (
        ("drawn", np.random.default_rng(0).dirichlet(np.full(64, 0.3), size=(12, 64))),
        ("of a random encoder", maps_of(64)),
    ):
        sinks = [0, 17, 40, 63]
        flows: dict[str, Any] = {}
        theirs = once(lambda m=maps, s=sinks, f=flows: f.update(peer=peers.networkx_flow(m, row=0, sinks=s)))
        ours = seconds_of({"row": lambda m=maps: flow_row(m, 0, normalise=False)}, repeats=args.repeats)["row"]
        apart = np.abs(flow_row(maps, 0, normalise=False)[sinks] - flows["peer"]).max()
        row = (name, f"12 × {maps.shape[-1]}", ours, theirs / len(sinks) * 64, theirs / len(sinks) * 64 / ours, apart)
        found.append(row)
    for name, maps in (
        ("drawn", np.random.default_rng(0).dirichlet(np.full(256, 0.3), size=(12, 256))),
        ("of a random encoder", maps_of(256)),
    ):
        found.append((name, "12 × 256", once(lambda m=maps: flow_row(m, 0)), "", "", ""))
    head = ("maps", "layers × tokens", "ours, one row, s", "networkx, s (four sinks × 16)", "ratio", "difference")
    table("Attention flow of one output to all inputs", head, found)


def maps_of(tokens: int) -> np.ndarray:
    """Head-averaged attention of the random encoder on one text, (12, n, n)."""
    from veedor.subjects import capture

    subject = given.random_encoder(window=tokens)
    [batch] = subject.batches(subject.encode(given.random_texts(1, tokens, tokens)))
    maps: list[torch.Tensor] = []
    with torch.no_grad(), capture(subject) as seen:
        seen.on_layer(lambda layer: maps.append(layer.weights().mean(dim=1)[0]))
        subject.logits(batch)
    return torch.stack(maps).double().numpy()


def backward(args: argparse.Namespace) -> None:
    """The gradient family from one backward pass, and relevance propagation, over a plain forward pass."""
    from veedor.attribution.gradient_family import gradient_family

    subject = given.random_encoder()
    found: list[tuple[object, ...]] = []
    for texts, tokens in ((16, 32), (1, 128)):
        encodings = subject.encode(given.random_texts(texts, tokens, tokens))
        question = Question(subject, encodings, 1, "gradient")
        ways: dict[str, Callable[[], object]] = {
            "plain": lambda e=encodings: plain(subject, e),
            "gradient family": lambda q=question: gradient_family(q),
            "attn_lrp": lambda e=encodings: explain(subject, e, 1, method="attn_lrp"),
            "cp_lrp": lambda e=encodings: explain(subject, e, 1, method="cp_lrp"),
        }
        seconds = seconds_of(ways, repeats=args.repeats)
        found.extend((way, f"{texts} × {tokens}", seconds[way] / seconds["plain"]) for way in list(ways)[1:])
    table("Backward passes, 12 layers × 768", ("what", "texts × tokens", "time / plain forward"), found)


def methods(args: argparse.Namespace) -> None:
    """Ten methods over short texts against the public way of each."""
    from benchmarks import methods as compared

    for subject, lines in pairs(args):
        compared.compare(subject, given.short(subject, lines, args.number), steps=args.steps)


def main() -> None:
    """Run the part that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts: dict[str, Callable[[argparse.Namespace], None]] = {
        "rollout": rollout,
        "integrated": integrated_gradients,
        "flow": flow,
        "backward": backward,
        "methods": methods,
        "memory": memory,
    }
    parser.add_argument("part", choices=parts)
    parser.add_argument("way", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("tokens", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--model", action="append", help="folder of a BERT-like classifier with two labels")
    parser.add_argument("--texts", action="append", help="CSV with a column text, one for each model")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=80, help="of the float64 reference of integrated gradients")
    parser.add_argument("--short", type=int, default=256)
    parser.add_argument("--long", type=int, default=64)
    parser.add_argument("--sharp", type=int, default=64)
    parser.add_argument("--steps", type=int, default=25, help="of captum's integrated gradients, where methods meet")
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--cache", type=Path, default=Path("/tmp/veedor-benchmarks"))
    args: Any = parser.parse_args()
    torch.set_num_threads(args.threads)
    parts[args.part](args)


if __name__ == "__main__":
    main()
