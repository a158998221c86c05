"""A finished audit made by hand, and a tiny classifier in a SQLite registry."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from pipeline import provenance
from pipeline.folder import write_settings
from pipeline.store import register_classifier
from pipeline.tracking import default_tracking_uri, sqlite_file
from tests.pipeline.by_hand import card, challenged, contexts, effects, finding, ruling
from veedor.records import (
    Attributions,
    Decisions,
    EvaluationSet,
    Findings,
    MethodReliability,
    Reliability,
    SubjectCard,
    Verdict,
)
from veedor.report.render import write_manifest
from veedor.settings import Policy, Settings

DEFAULT = Policy()
TEXTS = ("I met a tall person .", "I met an old person .", "the young person laughed .", "what a vile thing")


# MLflow's use of SQLAlchemy 2.1, not ours.
THEIRS = ("ignore:The ``noload`` loader strategy:DeprecationWarning",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Warnings are errors here, but for those that MLflow raises on its own."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for warning in THEIRS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(autouse=True)
def no_mlflow_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests neither see the user's tracking store nor write into the checkout."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI", "MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite store in which nothing was logged; making one takes seconds, copying it none."""
    from mlflow import MlflowClient

    uri = default_tracking_uri(tmp_path_factory.mktemp("empty"))
    MlflowClient(tracking_uri=uri, registry_uri=uri).search_experiments()
    found = sqlite_file(uri)
    assert found is not None
    return found


@pytest.fixture
def uri(empty_store: Path, tmp_path: Path) -> str:
    """The address of an empty store in this test's folder."""
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    return default_tracking_uri(tmp_path)


@dataclass(frozen=True)
class Registry:
    """A store with one registered classifier: version 1, alias `candidate`."""

    uri: str
    name: str = "tiny"


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    from veedor.subjects.tiny import untrained, whole_word_tokenizer

    folder = tmp_path_factory.mktemp("registry")
    uri = default_tracking_uri(folder)
    tokenizer = whole_word_tokenizer(TEXTS)
    model = untrained(tokenizer, ("fine", "bad"), seed=1)
    assert register_classifier(model, tokenizer, name="tiny", alias="candidate", tracking_uri=uri) == "models:/tiny/1"
    return Registry(uri)


@pytest.fixture
def finished_audit(tmp_path: Path) -> Callable[..., Path]:
    """Write an audit of two groups: one fails at +1.5 logits, the other has no estimate."""

    def write(subject: SubjectCard | None = None, *, policy: Policy = DEFAULT, name: str = "audit") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        write_settings(folder, Settings(policy=policy))
        rows = pd.DataFrame({"id": ["1"], "text": [TEXTS[0]]})
        EvaluationSet(
            name="by-hand",
            language="en",
            licence="Apache-2.0",
            source="tests",
            intended_construct="term_swap_effect",
            digest="d" * 64,
            rows=rows,
            excluded=rows.head(0),
        ).save(folder / "evaluation")
        Decisions(
            subject=subject or card(),
            target="bad",
            target_source="named",
            score_function="log-odds of the target",
            threshold=0.5,
            rows=rows,
        ).save(folder / "decisions")
        Attributions(target="bad", score_function="log-odds of the target", methods={}, rows=rows).save(
            folder / "attributions"
        )
        Reliability(
            target="bad",
            score_function="log-odds of the target",
            operators=("mask", "delete"),
            level=0.95,
            cascade_limit=0.5,
            gap_limit=0.05,
            methods={"rollout": MethodReliability(unreliable=True, marks=("not_beyond_random",), targeted=False)},
            forwards=100,
            scores=challenged(),
            values=rows,
            agreement=rows.head(0),
        ).save(folder / "reliability")
        findings = (
            finding("group/age/older", 1.5),
            finding("group/religion/muslim", None),
            finding("term/age/older/old", 1.6, prediction_error=0.3, prediction_df=29.0, most_extreme_control=0.5),
        )
        tables = {"effects": effects(), "contexts": contexts(), "groups": rows, "pairs": rows}
        Findings.model_validate({"scale": policy.scale, "target": "bad", "findings": findings, **tables}).save(
            folder / "findings"
        )
        rulings = (
            ruling("group/age/older", "FAIL", 1.5),
            ruling("group/religion/muslim", "NOT_TESTED", None),
            ruling("term/age/older/old", "FAIL", 1.6),
        )
        content = policy.model_dump(mode="json")
        Verdict(overall="FAIL", rule="by_hand", policy=content, policy_digest=policy.digest(), rulings=rulings).save(
            folder / "verdict"
        )
        (folder / "summary.md").write_text("# FAIL\n", encoding="utf-8")
        provenance.write(folder, provenance.begin(folder, "models:/tiny@candidate", Settings()))
        write_manifest(folder)
        return folder

    return write
