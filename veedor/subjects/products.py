"""The product of attention weights with values, however a model writes it: matmul, bmm or einsum.

What is called a watched layer's weights is followed to here, so that they are known to be what made its output.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

BATCH_OF_MAPS = 4  # dimensions of (b, heads, n, m)


@dataclass(frozen=True)
class Product:
    """One call that multiplies weights of `shape` (b, heads, n, m) by values; `equation` is None but for einsum."""

    right: "torch.Tensor"
    shape: "torch.Size"
    equation: str | None = None

    def value(self) -> "torch.Tensor":
        """The values (b, key heads, m, d)."""
        if self.equation is None:
            by_head = self.right.ndim == BATCH_OF_MAPS
            return self.right if by_head else self.right.reshape(*self.shape[:2], *self.right.shape[-2:])
        (batch, head, _, key, width), own, _ = self._letters(self.equation)
        return self.right.permute([own.index(letter) for letter in (batch, head, key, width)])

    def laid_out(self, output: "torch.Tensor") -> "torch.Tensor":
        """An output (b, heads, n, d) as the call would have returned it."""
        if self.equation is None:
            return output if self.right.ndim == BATCH_OF_MAPS else output.flatten(0, 1)
        (batch, head, query, _, width), _, made = self._letters(self.equation)
        return output.permute([(batch, head, query, width).index(letter) for letter in made])

    @staticmethod
    def _letters(equation: str) -> tuple[list[str], list[str], list[str]]:
        """Letters of the weights with that of the values' width behind them, of the values, and of the result.

        >>> Product._letters("bnij,jbnd->ibnd")
        (['b', 'n', 'i', 'j', 'd'], ['j', 'b', 'n', 'd'], ['i', 'b', 'n', 'd'])
        """
        operands, _, made = equation.replace(" ", "").partition("->")
        left, _, right = operands.partition(",")
        return [*left, *(set(right) - set(left))], list(right), list(made)


def product_of(function: Any, args: tuple[Any, ...], weights: "torch.Tensor", shape: "torch.Size") -> Product | None:
    """The product, if this call multiplies `weights` from the left by values; None where it is another call."""
    import torch

    plain = (torch.matmul, torch.bmm, torch.Tensor.matmul, torch.Tensor.bmm, torch.Tensor.__matmul__)
    if function in plain and len(args) == 2 and args[0] is weights:
        return Product(args[1], shape)
    if function is torch.einsum and len(args) == 3 and args[1] is weights and weights.ndim == BATCH_OF_MAPS:
        return Product(args[2], shape, args[0])
    return None
