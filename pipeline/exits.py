"""Exit codes, in one place. The library raises; only here does an error or a verdict become a number.

0 PASS · 1 FAIL · 2 bad usage, settings or policy · 3 INCONCLUSIVE or NOT_TESTED on a primary hypothesis · 4 model
cannot be loaded or explained · 5 evaluation set breaks its contract · 6 tracking server unreachable or disk full
70 our fault · 130 interrupted (Ctrl-C).
"""

from collections.abc import Mapping
from typing import Any

from veedor.errors import EvaluationSetError, StoreError, SubjectError, UsageError

PASS, FAIL, USAGE, UNDECIDED, SUBJECT, EVALUATION_SET, STORE, OURS = 0, 1, 2, 3, 4, 5, 6, 70
INTERRUPTED = 130  # what shells use for Ctrl-C
OF_ERRORS: dict[type[BaseException], int] = {
    UsageError: USAGE,
    SubjectError: SUBJECT,
    EvaluationSetError: EVALUATION_SET,
    StoreError: STORE,
    KeyboardInterrupt: INTERRUPTED,
}


def code_of_error(error: BaseException) -> int:
    """The code of an error; 70 for whatever is no fault of the user's.

    >>> code_of_error(SubjectError("no model")), code_of_error(KeyError("x"))
    (4, 70)
    """
    return next((code for kind, code in OF_ERRORS.items() if isinstance(error, kind)), OURS)


def code_of_verdict(overall: str, policy: Mapping[str, Any], *, logged: bool = True) -> int:
    """The code of a verdict under its policy; FAIL outranks a store that was gone, nothing else does.

    >>> code_of_verdict("FAIL", {}, logged=False), code_of_verdict("PASS", {}, logged=False)
    (1, 6)
    >>> code_of_verdict("INCONCLUSIVE", {"inconclusive": "pass"}), code_of_verdict("NOT_TESTED", {})
    (0, 3)
    """
    if overall == "FAIL":
        return FAIL
    if not logged:
        return STORE
    if overall == "PASS" or policy.get("inconclusive") == "pass":
        return PASS
    return UNDECIDED
