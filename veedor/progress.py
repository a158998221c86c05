"""How long work tells how far it is: a callable, so that the library prints nothing itself."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much is done, and how much there is in all."""


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""
