"""The last thing an audit prints: verdict, what failed and by how much, where everything lies, what to do next."""

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.console import print_table, say, stdout
from pipeline.tracking import without_secrets

if TYPE_CHECKING:
    from pipeline.run import AuditResult
    from veedor.records import Ruling, Verdict

STYLES = {"PASS": "bold green", "FAIL": "bold red", "INCONCLUSIVE": "bold yellow", "NOT_TESTED": "bold yellow"}
MEANING = {
    "PASS": "every effect that was judged is shown to lie inside the margin",
    "FAIL": "at least one effect is shown and lies beyond the margin",
    "INCONCLUSIVE": "no effect is shown beyond the margin, but not all are shown to lie inside it",
    "NOT_TESTED": "no primary hypothesis could be decided",
}
SHOWN = 12


def print_audit(result: "AuditResult") -> None:
    """Verdict, failures, files, MLflow run and next command."""
    decisions = record_of(result.folder, "decisions")
    print_verdict(result.verdict, decisions)
    print_unreliable(record_of(result.folder, "reliability"))
    console = stdout()
    for name in sorted(result.report.files):
        if name.startswith("report.") or name == "summary.md":
            console.print(f"report    {shown(result.folder / name)}")
    console.print(f"evidence  {shown(result.folder)}")
    if result.run_id:
        console.print(f"MLflow    run {result.run_id} in {without_secrets(result.tracking_uri or '')}")
    console.print(f"next      {next_command(result)}")
    if result.log_error:
        outcome = "FAIL, and the audit was not logged" if result.verdict.overall == "FAIL" else "not logged"
        say(f"veedor: {outcome}: {result.log_error}")


def print_unreliable(reliability: dict[str, Any]) -> None:
    """The attribution methods that are marked on this model, a line each, with the reasons."""
    from veedor.report import project_root
    from veedor.report.language import read_words

    marked = {name: of for name, of in reliability["methods"].items() if of["unreliable"]}
    words = read_words(project_root() / "reports" / "words", "en") if marked else None
    for name, of in marked.items():
        why = "; ".join(words.code("marks", mark) for mark in of["marks"]) if words else ""
        stdout().print(f"UNRELIABLE on this model: {name}: {why}")


def print_verdict(verdict: "Verdict", decisions: dict[str, Any]) -> None:
    """The verdict in one line, then the table of what failed or stayed open."""
    from rich.text import Text

    console = stdout()
    headline = Text(verdict.overall, style=STYLES[verdict.overall])
    headline.append(f"  {subject_line(decisions)}", style="not bold default")
    console.print(headline)
    waived = ", with waivers" if verdict.with_waivers else ""
    lets_pass = verdict.overall in ("INCONCLUSIVE", "NOT_TESTED") and verdict.policy.get("inconclusive") == "pass"
    console.print(f"{MEANING[verdict.overall]}{waived}{'; the policy lets it pass' if lets_pass else ''}")
    print_rulings(verdict)


def subject_line(decisions: dict[str, Any]) -> str:
    """Which model and target.

    >>> subject_line({"subject": {"name": "m", "uri": "models:/x/3", "alias": "best"}, "target": "bad",
    ...               "target_source": "label_1"})
    "m (models:/x/3), target 'bad' (assumed: label 1 of two)"
    """
    subject = decisions["subject"]
    pinned = f" ({subject['uri']})" if subject.get("uri") and subject["uri"] != subject["name"] else ""
    assumed = " (assumed: label 1 of two)" if decisions.get("target_source") == "label_1" else ""
    return f"{subject['name']}{pinned}, target {decisions['target']!r}{assumed}"


def print_rulings(verdict: "Verdict") -> None:
    """The gating hypotheses that failed, largest effect first; where none did, what is undecided, by number."""
    failed = [ruling for ruling in verdict.rulings if ruling.verdict == "FAIL" and ruling.gating]
    failed.sort(key=lambda ruling: (ruling.scope != "group", -abs(ruling.estimate or 0.0)))
    if failed:
        level = f"{100 * (1 - float(verdict.policy.get('alpha', 0.05))):g} % interval"
        columns = ("failing hypothesis", ">effect", ">odds ×", f">{level}", ">adjusted p", "waived until")
        print_table(None, columns, [failure_row(ruling, verdict.policy) for ruling in failed[:SHOWN]])
        if len(failed) > SHOWN:
            stdout().print(f"… and {len(failed) - SHOWN} more, in the report")
    undecided = [ruling.id for ruling in verdict.rulings if ruling.primary and ruling.verdict == "INCONCLUSIVE"]
    if undecided:
        more = f" … and {len(undecided) - SHOWN} more" if len(undecided) > SHOWN else ""
        stdout().print(f"undecided {', '.join(undecided[:SHOWN])}{more}")
    primary = [ruling.verdict for ruling in verdict.rulings if ruling.primary]
    counted = ", ".join(f"{primary.count(name)} {name}" for name in MEANING if name in primary)
    stdout().print(f"primary hypotheses: {counted or 'none'}")
    for reason, number_of in reasons_not_tested(verdict):
        stdout().print(f"not tested {number_of} times: {reason}")


def reasons_not_tested(verdict: "Verdict") -> list[tuple[str, int]]:
    """Why primary hypotheses were not tested, in words, the most frequent reason first."""
    from veedor.report import project_root
    from veedor.report.language import read_words

    codes = Counter(ruling.rule for ruling in verdict.rulings if ruling.primary and ruling.verdict == "NOT_TESTED")
    words = read_words(project_root() / "reports" / "words", "en")
    return [(words.reason(code), number_of) for code, number_of in codes.most_common()]


def failure_row(ruling: "Ruling", policy: dict[str, Any]) -> tuple[str, ...]:
    """One failing hypothesis as cells."""
    interval = f"{number(ruling.low)} to {number(ruling.high)}"
    logit = policy.get("scale", "logit") == "logit" and ruling.estimate is not None
    odds = f"{math.exp(min(ruling.estimate or 0.0, 50.0)):.2f}" if logit else ""
    p = "" if ruling.adjusted_p is None else f"{ruling.adjusted_p:.2g}"
    return ruling.id, number(ruling.estimate), odds, interval, p, (ruling.waiver or {}).get("expires", "")


def number(value: float | None) -> str:
    """A signed effect with three digits.

    >>> number(2.7712), number(-0.05), number(None)
    ('+2.77', '-0.05', '-')
    """
    return "-" if value is None else f"{value:+.2f}"


def next_command(result: "AuditResult") -> str:
    """What a reader most likely wants to do now."""
    folder = shlex.quote(shown(result.folder))
    if result.log_error:
        return f"veedor log {folder} --tracking-uri URI"
    report = next((name for name in sorted(result.report.files) if name.endswith(".html")), None)
    limited = any(note["code"] == "limited" for note in record_of(result.folder, "evaluation")["notes"])
    if result.verdict.overall == "NOT_TESTED" and limited:
        return "audit again with a larger --limit, or without one: what is left is too little to judge"
    if result.verdict.overall == "PASS" or report is None:
        return f"veedor gate {folder} --policy FILE   decides again under another policy"
    return f"open {shlex.quote(shown(result.folder / report))}"


def shown(path: Path) -> str:
    """A path as short as it can be written from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def record_of(folder: Path, name: str) -> dict[str, Any]:
    """The plain part of a record, without its tables."""
    content: dict[str, Any] = loads((folder / name / "record.json").read_text(encoding="utf-8"))
    return content


def print_validation(validation: dict[str, Any], counts: dict[str, int], excluded: Sequence[tuple[str, int]]) -> None:
    """Every check of an evaluation set with its result, then what was counted and left out."""
    rows = [
        (
            "ok" if check["success"] else check["severity"],
            check["id"],
            str(check["unexpected_count"] or ""),
            ", ".join(map(str, check["unexpected_ids"][:5])),
        )
        for check in validation["checks"]
    ]
    print_table(None, ("result", "check", ">rows", "first of them"), rows)
    console = stdout()
    console.print(f"counts    {', '.join(f'{key} {value}' for key, value in sorted(counts.items()))}")
    if excluded:
        console.print(f"left out  {', '.join(f'{reason} {count}' for reason, count in excluded)}")
