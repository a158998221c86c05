"""Everything one text's explanation is told from: scores by method and label, what the model answers, attention maps.

Methods that this model does not allow are kept with their reason. Nothing is shown here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pipeline.explain_maps import AttentionMaps, maps_of
from veedor.errors import SubjectError, UsageError, VeedorError, unknown
from veedor.progress import Progress, silent
from veedor.settings import Settings

if TYPE_CHECKING:
    from veedor.attribution import Attribution, Question
    from veedor.subjects import Encoding, Subject

DEFAULT_METHOD = "integrated_gradients"
ALL = "all"
LONG = 128  # tokens above which a page holds the slow methods only where they were asked for
MOST_LABELS = 6  # labels that are explained in a page, by every method that is about a label


@dataclass(frozen=True)
class Told:
    """What one method says about one label: a score for each token of the encoding, None where it was left out."""

    attribution: "Attribution"
    tokens: tuple[float | None, ...]


@dataclass(frozen=True)
class Explained:
    """One text and all that was found out about it; `found` by method and label (None: methods without a target)."""

    model: str
    digest: str
    text: str
    encoding: "Encoding"
    token_names: tuple[str, ...]
    answers: tuple[tuple[str, float], ...]  # every label's probability
    target: str
    assumed: bool
    targets: tuple[str, ...]  # labels that were explained, the target first
    asked: tuple[str, ...]  # methods asked for that worked
    found: dict[tuple[str, str | None], Told] = field(default_factory=dict)
    failed: dict[str, VeedorError] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()  # methods that take long on a long text and were not asked for
    maps: AttentionMaps | None = None
    doubts: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by method: why an audit marks it unreliable

    def told(self, method: str, target: str | None = None) -> Told | None:
        """The method's answer for this label (the target where none is named)."""
        return self.found.get((method, target or self.target)) or self.found.get((method, None))


def methods_asked(names: Sequence[str] | None) -> tuple[str, ...]:
    """The methods that names stand for, `all` for each there is; UsageError names the nearest one."""
    from veedor.attribution import METHODS

    wrong = next((name for name in names or () if name not in METHODS and name != ALL), None)
    if wrong is not None:
        raise UsageError(unknown("method", wrong, [*METHODS, ALL]))
    asked = [one for name in names or (DEFAULT_METHOD,) for one in (METHODS if name == ALL else [name])]
    return tuple(dict.fromkeys(asked))


def explain_by(
    subject: "Subject",
    text: str,
    settings: Settings,
    asked: tuple[str, ...],
    *,
    whole: bool,
    progress: Progress = silent,
) -> Explained:
    """Explain the text by the methods asked for; `whole`: by every method, for several labels, with attention maps.

    Raises the first method's error where none of those asked for works on this model.
    """
    from steps.predict import resolve_target
    from veedor.attribution import Question

    [encoding] = subject.encode([text])
    target = resolve_target(subject, settings)
    answers = answers_of(subject, encoding)
    methods, left_out = methods_to_try(asked, len(encoding.ids)) if whole else (asked, ())
    targets = targets_of(target.label, answers) if whole else (target.label,)
    question = Question(subject, [encoding], 0, asked[0], seed=settings.seed, settings=settings)
    found, failed = _scores(question, text, methods, targets, progress)
    working = tuple(name for name in asked if name not in failed)
    if not working:
        raise failed[asked[0]]
    return Explained(
        model=subject.card.name,
        digest=subject.card.weights_digest,
        text=text,
        encoding=encoding,
        token_names=names_of(subject, text, encoding),
        answers=answers,
        target=target.label,
        assumed=target.source == "label_1",
        targets=targets,
        asked=working,
        found=found,
        failed=failed,
        left_out=left_out,
        maps=_maps(subject, encoding) if whole else None,
    )


def methods_to_try(asked: tuple[str, ...], tokens: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those asked for and all others, and which of the others are left out because the text is long."""
    from veedor.attribution import METHODS

    others = [name for name in METHODS if name not in asked]
    slow = [name for name in others if tokens > LONG and METHODS[name].cost == "many"]
    return (*asked, *(name for name in others if name not in slow)), tuple(slow)


def targets_of(target: str, answers: Sequence[tuple[str, float]]) -> tuple[str, ...]:
    """The target, then the most probable of the other labels."""
    others = sorted((pair for pair in answers if pair[0] != target), key=lambda pair: -pair[1])
    return (target, *(label for label, _ in others[: MOST_LABELS - 1]))


def answers_of(subject: "Subject", encoding: "Encoding") -> tuple[tuple[str, float], ...]:
    """The probability of each label."""
    import torch

    [batch] = subject.batches([encoding])
    with torch.no_grad():
        probabilities = subject.probabilities(subject.logits(batch))[0]
    return tuple((label, float(value)) for label, value in zip(subject.labels, probabilities, strict=True))


def names_of(subject: "Subject", text: str, encoding: "Encoding") -> tuple[str, ...]:
    """How tokens are called: by their characters in the text, by the tokenizer's own name where they have none."""
    raw = subject.tokenizer.convert_ids_to_tokens([int(index) for index in encoding.ids])
    spans = zip(raw, encoding.offsets, strict=True)
    return tuple(name_of(str(name), text[start:end]) for name, (start, end) in spans)


def name_of(raw: str, characters: str) -> str:
    """One token's name; a WordPiece inside a word keeps its mark.

    >>> name_of("##ing", "ing"), name_of("\u0120gay", "gay"), name_of("[CLS]", "")
    ('##ing', 'gay', '[CLS]')
    """
    if not characters:
        return raw
    return f"##{characters}" if raw.startswith("##") and not characters.startswith("##") else characters


def _scores(
    question: "Question", text: str, methods: Sequence[str], targets: Sequence[str], progress: Progress
) -> tuple[dict[tuple[str, str | None], Told], dict[str, VeedorError]]:
    from veedor.attribution import METHODS

    found: dict[tuple[str, str | None], Told] = {}
    failed: dict[str, VeedorError] = {}
    for done, name in enumerate(methods):
        progress("explain", done, len(methods))
        try:
            for target in targets if METHODS[name].targeted else (None,):
                index = question.subject.target_index(target or targets[0])
                found[name, target] = _told(replace(question, method=name, target_index=index), text)
        except (SubjectError, UsageError) as error:
            failed[name] = error
    progress("explain", len(methods), len(methods))
    return {key: told for key, told in found.items() if key[0] not in failed}, failed


def _told(question: "Question", text: str) -> Told:
    from veedor.attribution import answer
    from veedor.attribution.methods import present

    [scored], [encoding] = answer(question), question.encodings
    kept = range(len(encoding.ids)) if scored.kept is None else scored.kept
    by_place = dict(zip(kept, map(float, scored.scores), strict=True))
    tokens = tuple(by_place.get(place) for place in range(len(encoding.ids)))
    return Told(present(question, 0, text, scored), tokens)


def _maps(subject: "Subject", encoding: "Encoding") -> AttentionMaps | None:
    try:
        return maps_of(subject, encoding)
    except SubjectError:
        return None  # the methods that need attention stand among those that failed, with this reason
