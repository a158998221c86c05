"""The plan: which step makes which record from what, as a table. Nothing is imported until a step is run.

`reads` are the parameters of the step's function: earlier records, or what the pipeline lends (`settings`, `subject`,
`subject_language`, `policy`, `today`, `provenance`, `folder`, `progress`). `uses` are the settings that can change the
record: only these make a finished one out of date.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Step:
    """One arrow of the pipeline."""

    function: str
    reads: tuple[str, ...]
    writes: str
    record: str | None = None  # class in veedor.records; None: files, no record
    uses: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the step is called on the command line: the name of its file."""
        return self.function.partition(":")[0].rpartition(".")[2]

    def load(self) -> Callable[..., Any]:
        """Import the step's function.

        >>> PLAN[0].name, PLAN[0].writes
        ('collect', 'evaluation')
        """
        module, _, function = self.function.partition(":")
        found: Callable[..., Any] = getattr(import_module(module), function)
        return found


METHOD_OPTIONS = (
    "rollout",
    "attention",
    "attention_flow",
    "integrated_gradients",
    "smoothgrad",
    "grad_cam",
    "qkv_gradient",
    "occlusion",
    "kernel_shap",
    "lime",
)
"""Settings of single methods: whoever runs methods depends on them."""

PLAN = (
    Step(
        "steps.collect:collect",
        reads=("settings", "subject_language", "progress"),
        writes="evaluation",
        record="EvaluationSet",
        uses=("evaluation_set", "set_language", "limit", "seed"),
    ),
    Step(
        "steps.predict:predict",
        reads=("evaluation", "subject", "settings", "progress"),
        writes="decisions",
        record="Decisions",
        uses=("target", "threshold", "batch_size", "threads", "policy.target", "policy.scale", "policy.label_map"),
    ),
    Step(
        "steps.attribute:attribute_sample",
        reads=("evaluation", "decisions", "subject", "settings", "progress"),
        writes="attributions",
        record="Attributions",
        uses=(
            "methods",
            "attribution_rows",
            "seed",
            "batch_size",
            "threads",
            "words",
            *METHOD_OPTIONS,
            "policy.scale",
        ),
    ),
    Step(
        "steps.challenge:challenge",
        reads=("evaluation", "decisions", "attributions", "subject", "settings", "progress"),
        writes="reliability",
        record="Reliability",
        uses=(
            "challenge_rows",
            "challenge",
            "seed",
            "batch_size",
            "threads",
            "words",
            *METHOD_OPTIONS,
            "policy.scale",
        ),
    ),
    Step(
        "steps.measure:measure",
        reads=("evaluation", "decisions", "attributions", "settings", "progress"),
        writes="findings",
        record="Findings",
        uses=("seed", "policy.scale"),
    ),
    Step(
        "steps.judge:judge", reads=("findings", "policy", "today"), writes="verdict", record="Verdict", uses=("policy",)
    ),
    Step(
        "steps.publish:publish",
        reads=(
            "evaluation",
            "decisions",
            "attributions",
            "reliability",
            "findings",
            "verdict",
            "settings",
            "provenance",
            "folder",
            "progress",
        ),
        writes="report",
    ),
)
RECORDS = {step.writes: step.record for step in PLAN if step.record}
STEPS = {step.name: step for step in PLAN}
