"""What evaluation sets exist, what each measures, and what it must not be used for.

Benchmarks of contrastive pairs "frequently lack clear articulations of what is being measured" (Blodgett et al., 2021,
ACL): every entry says it. Constructs, issues and uses are codes; `reports/words` turns them into sentences.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class CatalogueEntry:
    """One evaluation set or file format."""

    name: str
    construct: str
    language: str | None  # None: that of the user's file
    licence: str
    source: str
    tasks: tuple[str, ...]
    known_validity_issues: tuple[str, ...]
    not_valid_for: tuple[str, ...]
    recognised_by: tuple[str, ...]  # columns by which a file of this format is known; () for generated sets


_NEVER = ("discrimination_of_people", "legal_compliance")


def _identity_terms(language: str) -> CatalogueEntry:
    return CatalogueEntry(
        name=f"identity-terms-{language}",
        construct="term_swap_effect",
        language=language,
        licence="Apache-2.0",
        source="Veedor, written for this project",
        tasks=("sentiment", "toxicity", "text_classification"),
        known_validity_issues=("templates_are_artificial", "words_stand_for_groups", "one_author"),
        not_valid_for=(*_NEVER, "accuracy", "dialects_and_names"),
        recognised_by=(),
    )


_ENTRIES = (
    _identity_terms("en"),
    _identity_terms("es"),
    CatalogueEntry(
        name="bias-madlibs",
        construct="unintended_bias_of_toxicity",
        language="en",
        licence="CC-BY-4.0",
        source="Dixon et al., 2018, AIES: Measuring and mitigating unintended bias in text classification (Jigsaw)",
        tasks=("toxicity",),
        known_validity_issues=(
            "templates_are_artificial",
            "few_forms",
            "ungrammatical",
            "no_controls",
            "words_stand_for_groups",
            "offensive_language",
        ),
        not_valid_for=(*_NEVER, "accuracy", "dialects_and_names"),
        recognised_by=("Text", "Label", "Template"),
    ),
    CatalogueEntry(
        name="hatecheck",
        construct="hate_speech_functions",
        language="en",
        licence="CC-BY-4.0",
        source="Röttger et al., 2021, ACL: HateCheck: functional tests for hate speech detection models",
        tasks=("hate_speech",),
        known_validity_issues=(
            "templates_are_artificial",
            "seven_target_groups",
            "no_controls",
            "slurs_are_asymmetric",
            "offensive_language",
        ),
        not_valid_for=(*_NEVER, "accuracy", "sentiment"),
        recognised_by=("functionality", "test_case", "label_gold", "target_ident"),
    ),
    CatalogueEntry(
        name="user-file",
        construct="term_swap_effect",
        language=None,
        licence="unknown",
        source="the user's file",
        tasks=("text_classification",),
        known_validity_issues=("swaps_unreviewed", "terms_found_by_lexicon", "words_stand_for_groups"),
        not_valid_for=_NEVER,
        recognised_by=("text",),
    ),
)

CATALOGUE: Mapping[str, CatalogueEntry] = {entry.name: entry for entry in _ENTRIES}
