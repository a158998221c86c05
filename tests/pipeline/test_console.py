"""Progress and summary where standard error is no terminal."""

import pytest

from pipeline.console import harmless, plain_progress, print_table, progress_shown, say, stdout
from pipeline.summary import print_verdict
from tests.pipeline.by_hand import ruling
from veedor.records import Verdict
from veedor.settings import Policy


def test_plain_progress_speaks_at_the_beginning_and_the_end_and_seldom_between(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show = plain_progress()
    for done in range(101):
        show("predict", done, 100)
    show("measure", 0, 1)
    out, said = capsys.readouterr()
    assert out == "", "results only go to standard output"
    assert said.splitlines() == ["predict: 0/100", "predict: 100/100", "measure: 0/1"]


def test_a_pipe_gets_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_shown() as show:
        show("collect", 1, 1)
    assert capsys.readouterr().err == "collect: 1/1\n"


def verdict(overall: str, policy: Policy, *rulings: object) -> Verdict:
    content = policy.model_dump(mode="json")
    values = {"overall": overall, "rule": "by_hand", "policy": content, "policy_digest": policy.digest()}
    return Verdict.model_validate(values | {"rulings": rulings})


DECISIONS = {"subject": {"name": "m", "uri": None}, "target": "bad", "target_source": "named"}


def test_failures_are_shown_with_the_largest_effect_first_groups_before_terms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rulings = (
        ruling("term/age/older/old", "FAIL", 3.0),
        ruling("group/age/older", "FAIL", 1.0),
        ruling("group/religion/muslim", "FAIL", -2.0),
        ruling("group/gender/women", "PASS", 0.1),
    )
    print_verdict(verdict("FAIL", Policy(), *rulings), DECISIONS)
    told = capsys.readouterr().out
    places = [told.index(name) for name in ("group/religion/muslim", "group/age/older", "term/age/older/old")]
    assert places == sorted(places)
    assert "group/gender/women" not in told and "3 FAIL" in told and "1 PASS" in told
    assert "0.14" in told, "exp(-2): what the odds are multiplied by"


def test_markup_in_names_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_verdict(verdict("FAIL", Policy(), ruling("term/age/older/[red]old", "FAIL", 1.0)), DECISIONS)
    assert "[red]old" in capsys.readouterr().out


def test_an_undecided_audit_that_may_pass_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_verdict(verdict("INCONCLUSIVE", Policy(inconclusive="pass")), DECISIONS)
    assert "the policy lets it pass" in capsys.readouterr().out


EVIL = "a\x1b[31mb\x1b]0;pwnc\u202ed\x9b2J"
SHOWN = r"a\x1b[31mb\x1b]0;pwnc\u202ed\x9b2J"


def test_no_text_can_steer_the_terminal_whichever_way_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.text import Text

    say(EVIL)
    stdout().print(EVIL)
    stdout().print(Text(EVIL, style="bold"))
    print_table(EVIL, ("column",), [(EVIL,)])
    told, said = capsys.readouterr()
    assert said == SHOWN + "\n"
    assert told.count(SHOWN) == 4
    assert not set("\x1b\x9b\u202e") & set(told)


def test_lines_and_tabs_stay_but_a_cell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\n\tb")
    print_table(None, ("column",), [("a\nb",)])
    told, said = capsys.readouterr()
    assert said == "a\n\tb\n" and r"a\nb" in told


def test_what_cannot_be_encoded_is_shown_all_the_same() -> None:
    assert harmless("a\ud800b") == r"a\ud800b"
