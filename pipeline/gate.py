"""Judge stored findings again, without the model.

A policy may change margin, alpha, scopes, groups, adverse, fail_when, inconclusive, minimum, concordance and waivers. A
new target, scale or label map asks for numbers that were never measured: that needs a new audit, and is said.
"""

from datetime import UTC, datetime
from pathlib import Path

from pipeline.claim import disk_faults
from pipeline.evidence import finished, require_same_policy
from pipeline.folder import write_settings
from veedor.errors import UsageError
from veedor.records import Findings, Verdict
from veedor.settings import Policy, Settings, read_policy, read_settings


def judge_again(folder: Path, policy_file: str | None) -> tuple[Verdict, Settings]:
    """The verdict on a folder's findings under a policy (its own where none is given), and the settings that say so."""
    from steps.judge import judge

    stored = read_settings(folder / "settings.yaml")
    findings = read_findings(folder)
    if not policy_file and finished(folder / "verdict"):
        require_same_policy(folder, stored.policy.digest(), read_verdict(folder).policy_digest)
    policy = joined(read_policy(policy_file), stored, findings) if policy_file else stored.policy
    verdict = judge(findings, policy, today=datetime.now(UTC).date())
    return verdict, stored.model_copy(update={"policy": policy})


def read_findings(folder: Path) -> Findings:
    """The folder's findings; UsageError where they are missing or were altered."""
    finished(folder / "findings")
    try:
        return Findings.load(folder / "findings")
    except ValueError as error:
        raise UsageError(f"cannot judge this audit: {error}") from error


def read_verdict(folder: Path) -> Verdict:
    """The folder's verdict; UsageError where it was altered."""
    try:
        return Verdict.load(folder / "verdict")
    except ValueError as error:
        raise UsageError(f"cannot tell which policy this audit was judged under: {error}; give --policy") from error


def joined(policy: Policy, stored: Settings, findings: Findings) -> Policy:
    """The new policy, with the stored target and label map; UsageError where it asks for what was not measured."""
    given = policy.model_fields_set
    if policy.target not in (None, findings.target):
        raise new_audit("target", policy.target, findings.target)
    if policy.scale != findings.scale:
        raise new_audit("scale", policy.scale, findings.scale)
    if "label_map" in given and policy.label_map != stored.policy.label_map:
        raise new_audit("label_map", policy.label_map, stored.policy.label_map)
    return policy.model_copy(update={"target": stored.policy.target, "label_map": stored.policy.label_map})


def new_audit(key: str, asked: object, audited: object) -> UsageError:
    """The UsageError for what cannot be changed on stored evidence."""
    return UsageError(
        f"the policy's {key} is {asked!r}, but this audit measured {key} {audited!r}; stored findings cannot answer "
        f"that: a new audit is needed (veedor audit MODEL --policy FILE)"
    )


def write_verdict(folder: Path, verdict: Verdict, settings: Settings) -> None:
    """Put the new verdict and policy in the folder, in place of the earlier ones."""
    findings = finished(folder / "findings") or {}
    made_from = {"findings": str(findings.get("digest")), "policy": settings.policy.digest()}
    with disk_faults(folder, again="repeat the command"):
        verdict.save(folder / "verdict", made_from=made_from)
        write_settings(folder, settings)
