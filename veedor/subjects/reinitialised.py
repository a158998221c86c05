"""A subject whose trained weights are drawn anew from the top down: what an explanation of it has lost must have come
from those weights (Adebayo et al., 2018, cascading randomisation).

The classifier's head goes first (with a pooler, where there is one), then the layers from the last to the first. The
embeddings stay: for every gradient method they are the input. A copy is changed, never the subject that was given; it
takes as much memory as the model. Weights are drawn as the architecture itself draws them before training, by a seed.
"""

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from veedor.errors import SubjectError
from veedor.subjects.subject import Subject

if TYPE_CHECKING:
    import torch

HEAD = "head"
SPREAD = 0.02  # standard deviation for a matrix that the architecture leaves as it is and declares none for


def cascade(subject: Subject, *, seed: int = 0) -> Iterator[tuple[str, Subject]]:
    """Step by step, the same copy with more and more drawn anew: "head", then "layer 12" … "layer 1".

    Each step goes on from the one before, so use what is yielded before the next is asked for. SubjectError where the
    model has no stack of layers that can be told apart.
    """
    import torch

    changed = copy.copy(subject)
    changed.model = copy.deepcopy(subject.model).eval()
    for name, modules in parts(changed.model, subject.name):
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed + len(name) * 1009 + sum(map(ord, name)))
            for module in modules:
                redraw(changed.model, module)
        yield name, changed


def parts(model: Any, name: str) -> "list[tuple[str, list[torch.nn.Module]]]":
    """What is drawn anew at each step: the head, then each layer from the top; what follows the layers goes with the
    topmost, so that the head step leaves every attention map as it was.
    """
    import torch

    stacks = layer_stacks(model)
    if not stacks:
        raise SubjectError(
            f"{name} ({type(model).__name__}) has no stack of layers that can be told apart, so its weights cannot be "
            "drawn anew from the top down; leave the randomisation check out (challenge: {randomise: false})"
        )
    base = getattr(model, "base_model", model)
    in_base = {id(module) for module in base.modules()} if base is not model else set()
    layers = [layer for stack in stacks for layer in stack]
    in_layers = {id(module) for layer in layers for module in layer.modules()}
    embedded = {id(module) for module in _embedding_part(model)}
    head: list[torch.nn.Module] = []
    rest: list[torch.nn.Module] = []
    for path, module in model.named_modules():
        if id(module) in in_layers | embedded or not any(True for _ in module.parameters(recurse=False)):
            continue
        outside = id(module) not in in_base or "pooler" in path.split(".")
        (head if outside else rest).append(module)
    steps = [(HEAD, head)]
    for number in range(len(layers), 0, -1):
        own = list(layers[number - 1].modules())
        steps.append((f"layer {number}", own + rest if number == len(layers) else own))
    return steps


def layer_stacks(model: Any) -> "list[list[torch.nn.Module]]":
    """The outermost lists of alike modules, in the order in which the model names them: encoder before decoder."""
    import torch

    found: list[list[torch.nn.Module]] = []
    inside: set[int] = set()
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) and id(module) not in inside:
            if len({type(layer) for layer in module}) == 1 and any(True for _ in module.parameters()):
                found.append(list(module))
                inside |= {id(part) for part in module.modules()}
    return found


def _embedding_part(model: Any) -> "Iterator[torch.nn.Module]":
    """Every embedding, and what is named after them, such as the norm of their sum."""
    import torch

    for path, module in model.named_modules():
        if isinstance(module, torch.nn.Embedding) or "embed" in path:
            yield module


def redraw(model: Any, module: "torch.nn.Module") -> None:
    """Draw one module's own weights as the architecture does before training; matrices never stay as they were."""
    before = {name: own.detach().clone() for name, own in module.named_parameters(recurse=False)}
    if not before:
        return
    for flagged in (module, *module.parameters(recurse=False)):
        flagged.__dict__.pop("_is_hf_initialized", None)
    if hasattr(model, "_init_weights"):
        model._init_weights(module)
    elif hasattr(module, "reset_parameters"):
        module.reset_parameters()  # type: ignore[operator]
    spread = float(getattr(getattr(model, "config", None), "initializer_range", SPREAD) or SPREAD)
    for name, own in module.named_parameters(recurse=False):
        if own.ndim > 1 and bool((own == before[name]).all()):
            own.data.normal_(0.0, spread)
