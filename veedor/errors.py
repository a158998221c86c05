"""The four ways a user's input can be wrong, told apart because the command line answers each with its own exit code.

Every message names the culprit, the value, what was expected and the way out. Anything else that is raised is a fault
of ours. No exit codes here: the library does not know that there is a command line.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class VeedorError(Exception):
    """Something the user gave cannot be used; the message says what to do."""


class UsageError(VeedorError, ValueError):
    """Bad settings, policy, method, label, language or flag."""


class SubjectError(VeedorError):
    """The model cannot be found, loaded or explained."""


class EvaluationSetError(VeedorError):
    """The evaluation set breaks its contract."""


class StoreError(VeedorError):
    """The tracking server, or the disk behind it, cannot be reached or written."""


def unknown(what: str, value: str, known: Iterable[str]) -> str:
    """Say that a name is not known, which name is nearest, and what exists.

    >>> unknown("method", "rolout", ["rollout", "random"])
    "unknown method 'rolout'; did you mean 'rollout'? known: random, rollout"
    """
    names = sorted(known)
    near = get_close_matches(value, names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return f"unknown {what} {value!r}{hint} known: {', '.join(names)}"
