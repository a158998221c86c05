"""Collect: from settings to a validated evaluation set, whatever it is called and wherever it lies."""

from pathlib import Path

from veedor.errors import EvaluationSetError, UsageError, unknown
from veedor.progress import Progress, silent
from veedor.records import EvaluationSet
from veedor.settings import Settings

GENERATED = "identity-terms-"
SHOWN_REASONS = 5


def collect(settings: Settings, subject_language: str | None, progress: Progress = silent) -> EvaluationSet:
    """The set the settings name, cut to their limit, with its validation result.

    Without a name it is the identity terms in the subject's language. Raises UsageError for a name that is neither a
    set nor a file, EvaluationSetError where the file cannot be read or a critical check fails.
    """
    from veedor.evaluation.limit import limit_rows
    from veedor.evaluation.suite import validate

    progress("collect: read", 0, 2)
    evaluation = limit_rows(find(settings, subject_language), settings.limit, seed=settings.seed)
    progress("collect: validate", 1, 2)
    validated = validate(evaluation)
    progress("collect: validate", 2, 2)
    require_valid(validated)
    return validated


def find(settings: Settings, subject_language: str | None = None) -> EvaluationSet:
    """The set that the settings name, whole and not validated."""
    from veedor.evaluation.catalogue import CATALOGUE
    from veedor.evaluation.files import read_rows
    from veedor.evaluation.templates import build_identity_terms

    name = settings.evaluation_set or default_set(subject_language)
    generated = [known for known in CATALOGUE if known.startswith(GENERATED)]
    if name in generated:
        _same_language(settings, name)
        return build_identity_terms(name.removeprefix(GENERATED))
    if Path(name).exists():
        return read_rows(name, language=settings.set_language)
    if name in CATALOGUE:
        columns = ", ".join(CATALOGUE[name].recognised_by)
        raise UsageError(f"{name} is the format of a file, not a set of ours; give the path of a file with {columns}")
    raise UsageError(f"{unknown('evaluation set', name, generated)}; and there is no file or folder of that name")


def default_set(subject_language: str | None) -> str:
    """The identity terms in a model's language, English where it declares none.

    >>> default_set("es-MX"), default_set(None)
    ('identity-terms-es', 'identity-terms-en')
    """
    from veedor.evaluation.catalogue import CATALOGUE

    if subject_language is None:
        return f"{GENERATED}en"
    language = subject_language.replace("_", "-").split("-")[0].lower()
    known = [name.removeprefix(GENERATED) for name in CATALOGUE if name.startswith(GENERATED)]
    if language not in known:
        raise UsageError(
            f"the model declares language {subject_language!r}, for which there are no identity terms "
            f"(there are: {', '.join(sorted(known))}); name an evaluation set or a file"
        )
    return f"{GENERATED}{language}"


def require_valid(evaluation: EvaluationSet) -> None:
    """Raise EvaluationSetError where a critical check fails, naming the checks, the rows and why rows were left out."""
    from veedor.evaluation.suite import failing

    failed = failing(evaluation.validation)
    if failed:
        said = "; ".join(_told(check) for check in failed)
        raise EvaluationSetError(
            f"evaluation set {evaluation.name} fails {len(failed)} critical checks: {said}{_left_out(evaluation)}"
        )


def _told(check: dict[str, object]) -> str:
    ids = check["unexpected_ids"]
    rows = (
        f" ({check['unexpected_count']} rows: {', '.join(map(str, ids[:3]))})" if isinstance(ids, list) and ids else ""
    )
    observed = f" (missing: {check['observed']})" if check["id"] == "columns" else ""
    return f"{check['id']}{rows}{observed}"


def _left_out(evaluation: EvaluationSet) -> str:
    reasons = evaluation.excluded["reason"].value_counts()
    if reasons.empty:
        return ""
    shown = ", ".join(f"{reason} {number}" for reason, number in reasons.head(SHOWN_REASONS).items())
    hint = f" (searched with the terms of {evaluation.language!r}: set_language names another)"
    return f"; {len(evaluation.excluded)} rows were left out before: {shown}{hint if 'no_term' in reasons else ''}"


def _same_language(settings: Settings, name: str) -> None:
    language = name.removeprefix(GENERATED)
    if settings.set_language not in (None, language):
        raise UsageError(f"set_language is {settings.set_language!r}, but {name} is in {language!r}; leave it out")
