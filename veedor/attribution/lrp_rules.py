"""Which rule of relevance propagation every torch function of a forward pass falls under, as the model calls it.

A mode, active in this thread for one forward pass: it gives calls that are not linear the derivative of their rule and
lets linear ones pass. What it does not know it refuses by name, so that a plain gradient never stands in for a missing
rule. No class, module or function is changed.

The two methods differ where two inputs meet in a product. AttnLRP (Achtibat et al., 2024) gives each factor half of
the relevance (uniform rule, equation 7 and propositions 3.2 and 3.3), so half of the gradient. Conservative propagation
(Ali et al., 2022) takes attention weights for constants and, in gated MLPs, the activated factor: the gate.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.overrides import TorchFunctionMode

from veedor.attribution import lrp_derivatives as derivatives
from veedor.attribution.question import UnsupportedModelError

if TYPE_CHECKING:
    from veedor.subjects import Capture, LayerAttention, Subject

Product = Literal["halve", "detach_gate"]
Arguments = tuple[Any, ...]
Options = dict[str, Any]
Call = Callable[..., Any]

# By name without underscores: torch.add, Tensor.add_ and Tensor.__add__ are one. Linear in all that carries relevance.
LINEAR = frozenset(
    """
    add iadd radd sub isub rsub subtract neg negative pos positive sum mean cumsum
    view reshape flatten unflatten transpose permute t movedim moveaxis swapaxes swapdims squeeze unsqueeze contiguous
    expand expand_as view_as reshape_as repeat repeat_interleave tile clone get getitem setitem
    cat concat concatenate stack hstack vstack chunk split tensor_split unbind narrow select index_select
    gather take_along_dim scatter scatter_add index_add index_put index_copy roll flip pad where masked_fill
    masked_select to type type_as float double dropout triu tril diagonal
    """.split()
)
ACTIVATIONS = frozenset(
    "relu relu6 leaky_relu prelu elu celu selu gelu silu mish hardswish hardtanh tanh softsign".split()
)
MULTIPLICATIONS = frozenset("mul imul rmul multiply".split())
QUOTIENTS = frozenset("div idiv truediv itruediv true_divide divide".split())
CONTRACTIONS = frozenset("matmul imatmul rmatmul mm bmm mv linear einsum conv1d conv2d".split())
ADDING_CONTRACTIONS = frozenset("addmm baddbmm".split())  # the first argument is added, the other two are multiplied


class Rules(TorchFunctionMode):
    """The rules of one method on one model, active while entered."""

    def __init__(self, method: str, subject: "Subject", seen: "Capture", product: Product) -> None:
        """`seen` tells attention from other uses of a softmax, and names modules in refusals."""
        super().__init__()
        self.method, self.subject, self.seen, self.product = method, subject, seen, product
        self.in_attention = False
        self._softmaxes: list[UnsupportedModelError] = []  # whose weights were not yet seen in use
        seen.on_layer(self._see)

    def __torch_function__(self, func: Call, types: Any, args: Arguments = (), kwargs: Options | None = None) -> Any:
        """Make one call, by its rule."""
        given = kwargs or {}
        carrying = [tensor for tensor in tensors_in((args, given)) if carries(tensor)]
        if not carrying:
            return func(*args, **given)
        name = func.__name__.strip("_")
        rule = RULES.get(name)
        if rule is not None:
            return rule(self, func, args, given, carrying)
        made = func(*args, **given)
        if name in LINEAR or not any(map(carries, tensors_in(made))):
            return made
        raise self.refuse(f"there is no rule for {func.__name__}")

    @contextmanager
    def attention(self) -> Iterator[None]:
        """A softmax or a fused attention within is the attention that the capture sees."""
        self.in_attention = True
        try:
            yield
        finally:
            self.in_attention = False

    def expect_attention(self, reason: str) -> None:
        """A softmax was made; unless attention is seen to use it, this is why the model is refused."""
        self._softmaxes.append(self.refuse(reason))

    def _see(self, layer: "LayerAttention") -> None:
        """A watched layer has used the weights of the last softmax."""
        if layer.observed is not None and self._softmaxes:
            self._softmaxes.pop()

    def require_known(self, logits: torch.Tensor) -> None:
        """Refuse softmaxes that were not attention's, and derivatives that a model wrote itself (unseen by a mode)."""
        for refusal in self._softmaxes:
            raise refusal
        seen, pending = set[Any](), [logits.grad_fn]
        while pending:
            node = pending.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            made_by = getattr(node, "_forward_cls", None)
            if made_by is not None and made_by not in (derivatives.Activation, derivatives.Norm):
                raise self.refuse(f"there is no rule for {made_by.__name__}")
            pending.extend(before for before, _ in node.next_functions)

    def refuse(self, reason: str) -> UnsupportedModelError:
        """The error that names the module in which the rules end."""
        return UnsupportedModelError(
            f"{self.method} does not fit {self.subject.name}: in {self.place()} {reason}, and a plain gradient in "
            "its place would be another method; choose integrated_gradients, input_x_gradient or occlusion",
            code="no_lrp_rule",
        )

    def place(self) -> str:
        """Name and class of the innermost module that is running."""
        frame = sys._getframe(1)
        while frame.f_back is not None:
            frame = frame.f_back
            module = frame.f_locals.get("self")
            if isinstance(module, torch.nn.Module) and id(module) in self.seen.names:
                return f"{self.seen.names[id(module)] or 'the model'} ({type(module).__name__})"
        return "the model"


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """All tensors among a call's arguments or results."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(part)


def carries(tensor: torch.Tensor) -> bool:
    """Whether relevance passes through it: not through parameters, of which some models make new ones as they run."""
    return tensor.requires_grad and not isinstance(tensor, torch.nn.Parameter)


Rule = Callable[[Rules, Call, Arguments, Options, list[torch.Tensor]], Any]


def _activation(rules: Rules, func: Call, args: Arguments, given: Options, carrying: list[torch.Tensor]) -> Any:
    x, rest, options = _first(args, given)

    def function(at: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = func(at, *rest, **options)
        return made

    if len(carrying) > 1:
        raise rules.refuse(f"{func.__name__} has parameters that depend on the text")
    try:
        return derivatives.activation(function, x, derivatives.slope_at_zero(function, x))
    except derivatives.NoRuleError as error:
        raise rules.refuse(f"there is no rule for {func.__name__}: {error}") from None


def _norm(rules: Rules, func: Call, args: Arguments, given: Options, carrying: list[torch.Tensor]) -> Any:
    if len(carrying) > 1:
        raise rules.refuse(f"{func.__name__} has parameters that depend on the text")
    x, rest, options = _first(args, given)
    by_rule = derivatives.layer_norm if func.__name__ == "layer_norm" else derivatives.rms_norm
    return by_rule(x, *rest, **options)


def _first(args: Arguments, given: Options) -> tuple[torch.Tensor, Arguments, Options]:
    """What a function of one input is applied to, and its other arguments."""
    if args:
        return args[0], args[1:], given
    return given["input"], (), {name: value for name, value in given.items() if name != "input"}


def _multiplication(rules: Rules, func: Call, args: Arguments, given: Options, carrying: list[torch.Tensor]) -> Any:
    if len(carrying) > 1 and rules.product == "detach_gate":
        gates = [derivatives.is_activation(factor) for factor in args]
        if sum(gates) == 1:
            return func(*(own.detach() if gate else own for own, gate in zip(args, gates, strict=True)), **given)
    return _by_half(rules, func.__name__, func(*args, **given), len(carrying))


def _quotient(rules: Rules, func: Call, args: Arguments, given: Options, carrying: list[torch.Tensor]) -> Any:
    if len(carrying) > 1 or not args or carrying[0] is not args[0] or "rounding_mode" in given:
        raise rules.refuse(f"there is no rule for {func.__name__} by what depends on the text")
    return func(*args, **given)


def _contraction(rules: Rules, func: Call, args: Arguments, given: Options, carrying: list[torch.Tensor]) -> Any:
    before = rules.seen.layers
    made = func(*args, **given)
    if rules.seen.layers > before and rules.product == "detach_gate":
        return made  # attention's own product, whose weights were made constants when it was seen
    return _by_half(rules, func.__name__, made, len(carrying))


def _adding_contraction(rules: Rules, func: Call, args: Arguments, given: Options, carrying: list[torch.Tensor]) -> Any:
    if len(carrying) > 1 and any(own is args[0] for own in carrying):
        raise rules.refuse(f"{func.__name__} adds to a product of two factors that depend on the text")
    return _by_half(rules, func.__name__, func(*args, **given), len(carrying))


def _by_half(rules: Rules, name: str, made: Any, factors: int) -> Any:
    """A product of this many factors that carry relevance; a hook on it works before its own derivative."""
    if factors == 1 or not made.requires_grad:
        return made
    if factors > 2:
        raise rules.refuse(f"{name} multiplies {factors} factors that depend on the text")
    if rules.product == "halve":
        made.register_hook(lambda gradient: gradient / 2)
        return made
    # Scores of queries and keys are such a product, too: their gradient ends at the weights, which are constants.
    refusal = rules.refuse(f"{name} multiplies two factors that depend on the text, of which neither is a gate")

    def stop(_: torch.Tensor) -> None:
        raise refusal

    made.register_hook(stop)
    return made


def _softmax(rules: Rules, func: Call, args: Arguments, given: Options, carrying: list[torch.Tensor]) -> Any:
    """Proposition 3.1: in the form of gradient times input it is the plain gradient of attention's softmax."""
    if not rules.in_attention:
        rules.expect_attention(f"there is no rule for a {func.__name__} that is not attention's")
    return func(*args, **given)


def _fused_attention(rules: Rules, func: Call, args: Arguments, given: Options, carrying: list[torch.Tensor]) -> Any:
    before = rules.seen.layers
    made = func(*args, **given)
    if rules.in_attention or rules.seen.layers > before:  # by the rule for a layer, which the capture asked
        return made
    raise rules.refuse("attention is computed where it cannot be seen")


RULES: dict[str, Rule] = {
    **dict.fromkeys(ACTIVATIONS, _activation),
    **dict.fromkeys(MULTIPLICATIONS, _multiplication),
    **dict.fromkeys(QUOTIENTS, _quotient),
    **dict.fromkeys(CONTRACTIONS, _contraction),
    **dict.fromkeys(ADDING_CONTRACTIONS, _adding_contraction),
    "layer_norm": _norm,
    "rms_norm": _norm,
    "softmax": _softmax,
    "scaled_dot_product_attention": _fused_attention,
}
