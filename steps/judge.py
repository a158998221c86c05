"""Turn findings into a verdict. Needs no model, so that stored evidence can be judged again under another policy."""

from datetime import date

from veedor.records import Findings, Verdict
from veedor.settings import Policy


def judge(findings: Findings, policy: Policy, *, today: date) -> Verdict:
    """Hold every hypothesis against the policy; `today` decides which waivers still hold."""
    from veedor.verdicts import decide

    return decide(findings, policy, today=today)
