"""`veedor explain`: several methods, tokens, colours, standard input, an audit's word, files that may be written."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from click.testing import Result
from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.explain_answers import LONG, explain_by, methods_asked, methods_to_try
from pipeline.explain_audit import doubts_of
from pipeline.explain_page import may_write
from pipeline.explain_pieces import scored
from pipeline.explain_terminal import show
from tests.pipeline.by_hand import card
from tests.subjects import families
from veedor.attribution import METHODS
from veedor.errors import SubjectError, UsageError
from veedor.records import Decisions, MethodReliability, Reliability
from veedor.settings import Settings, build
from veedor.subjects import Subject
from veedor.subjects.tiny import untrained, whole_word_tokenizer

TEXT = "an old person sang ."
Ask = Callable[..., Result]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model") / "m"
    tokenizer = whole_word_tokenizer((TEXT,))
    untrained(tokenizer, ("fine", "bad"), seed=1).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def ask(model: str) -> Ask:
    def run(*arguments: str, given: bytes | None = None, **environment: str) -> Result:
        return CliRunner().invoke(app, ["explain", model, *arguments], input=given, env=environment)

    return run


def test_several_methods_stand_side_by_side(ask: Ask) -> None:
    done = ask(TEXT, "--method", "rollout,occlusion", "--target", "bad")
    assert done.exit_code == 0, done.stderr
    [header] = [line for line in done.stdout.splitlines() if "rollout" in line and "occlusion" in line]
    [row] = [line for line in done.stdout.splitlines() if line.startswith(" person")]
    assert (
        header.split()[0] == "word" and sum(part.replace(".", "").lstrip("+-").isdigit() for part in row.split()) == 2
    )


def test_unsigned_scores_bear_no_sign_and_signed_ones_do(ask: Ask) -> None:
    assert " +0." not in ask(TEXT, "--method", "rollout", "--target", "bad").stdout
    row = next(line for line in ask(TEXT, "--method", "occlusion").stdout.splitlines() if line.startswith(" person"))
    assert row.split()[1][0] in "+-"


def test_tokens_are_shown_on_request(ask: Ask) -> None:
    assert "[CLS]" not in ask(TEXT, "--method", "rollout").stdout
    assert "[CLS]" in ask(TEXT, "--method", "rollout", "--tokens").stdout


def test_colours_and_their_legend_are_for_terminals_without_no_color(ask: Ask) -> None:
    coloured = ask(TEXT, "--method", "occlusion", FORCE_COLOR="1", TERM="xterm-256color").stdout
    assert "\x1b[" in coloured and "red raises" in coloured
    for environment in ({}, {"NO_COLOR": "1"}):
        plain = ask(TEXT, "--method", "occlusion", **environment).stdout
        assert "\x1b[" not in plain and "red raises" not in plain


def test_the_text_may_come_from_standard_input(ask: Ask) -> None:
    assert ask("-", "--method", "rollout", given=b"old person\n").stdout.startswith("old person\n")
    assert ask("-", given=b"\n").exit_code == 2
    refused = ask("-", given=b"caf\xe9")
    assert refused.exit_code == 2 and "UTF-8" in refused.stderr


def test_a_file_that_is_no_page_of_ours_is_left_alone(ask: Ask, tmp_path: Path) -> None:
    own = tmp_path / "notes.html"
    own.write_text("my notes")
    refused = ask(TEXT, "--html", str(own))
    assert refused.exit_code == 2 and "no page that" in refused.stderr and own.read_text() == "my notes"
    assert ask(TEXT, "--html", str(tmp_path / "none" / "x.html")).exit_code == 2
    for _ in range(2):
        assert ask(TEXT, "--method", "rollout", "--html", str(tmp_path / "why.html")).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.html", "why.html"]


def test_a_folder_is_no_page(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--html"):
        may_write(tmp_path)


def test_all_stands_for_every_method_and_each_stands_once() -> None:
    assert methods_asked(["occlusion", "all"])[0] == "occlusion"
    assert sorted(methods_asked(["occlusion", "all"])) == sorted(METHODS)
    assert methods_asked(None) == ("integrated_gradients",)
    with pytest.raises(UsageError, match="did you mean 'rollout'"):
        methods_asked(["rolout"])


def test_slow_methods_are_left_out_of_a_long_texts_page_unless_asked_for() -> None:
    methods, left_out = methods_to_try(("occlusion",), LONG + 1)
    assert "occlusion" in methods and "integrated_gradients" in left_out and not set(methods) & set(left_out)
    assert methods_to_try(("occlusion",), LONG)[1] == ()


def test_a_refusal_is_raised_where_nothing_that_was_asked_for_works() -> None:
    subject = families.subject("t5")
    with pytest.raises(SubjectError, match="encoder-decoder"):
        explain_by(subject, TEXT, Settings(), ("rollout", "attention"), whole=False)
    told = explain_by(subject, TEXT, Settings(), ("rollout", "occlusion"), whole=False)
    assert told.asked == ("occlusion",) and list(told.failed) == ["rollout"]


def test_shares_are_of_the_largest_score() -> None:
    told = explain_by(families.subject("bert"), "Muslim sings", Settings(), ("occlusion",), whole=False)
    first = told.told("occlusion")
    assert first is not None
    words = list(scored(told, first))
    assert [word.piece.shown for word in words] == ["Muslim", "sings"] and max(word.share for word in words) == 1
    assert [word.against for word in words] == [float(score) < 0 for score in first.attribution.word_scores]


def audited(folder: Path, digest: str) -> Path:
    """An audit that found rollout and occlusion wanting, and could not tell of attention."""
    Decisions(
        subject=card(weights_digest=digest),
        target="bad",
        target_source="named",
        score_function="log-odds of the target",
        threshold=0.5,
        rows=pd.DataFrame(),
    ).save(folder / "decisions")
    found = {
        "rollout": MethodReliability(unreliable=True, marks=("not_beyond_random",), targeted=False),
        "occlusion": MethodReliability(unreliable=False, targeted=True),
        "attention": MethodReliability(unreliable=None, targeted=False),
    }
    tables = dict.fromkeys(("scores", "values", "agreement"), pd.DataFrame())
    given = {name: field.default for name, field in Reliability.model_fields.items() if not field.is_required()}
    needed = {"target": "bad", "score_function": "log-odds of the target", "operators": ("mask",), "level": 0.95}
    limits = {"cascade_limit": 0.5, "gap_limit": 0.05, "forwards": 1}
    Reliability.model_validate({**given, **needed, **limits, **tables, "methods": found}).save(folder / "reliability")
    return folder


def test_an_audit_of_the_same_weights_says_which_methods_it_marks(tmp_path: Path) -> None:
    assert doubts_of(audited(tmp_path, "w" * 64), "w" * 64) == {"rollout": ("not_beyond_random",)}


def test_an_audit_of_other_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not of the model that is"):
        doubts_of(audited(tmp_path, "w" * 64), "v" * 64)
    with pytest.raises(UsageError, match="finished audit"):
        doubts_of(tmp_path / "nothing", "w" * 64)


def test_a_method_that_an_audit_marks_is_shown_as_such(ask: Ask, model: str, tmp_path: Path) -> None:
    from veedor.subjects import Subject

    folder = audited(tmp_path / "audit", Subject.load(model).card.weights_digest)
    (folder / "settings.yaml").write_text("{}")
    html = tmp_path / "why.html"
    done = ask(TEXT, "--method", "rollout,occlusion", "--audit", str(folder), "--html", str(html))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("marked unreliable") == 1 and "words at random" in done.stdout
    assert "palabras al azar" in html.read_text(encoding="utf-8")


@pytest.mark.parametrize("second", ["zero", "none"])
def test_how_far_a_second_baseline_agrees_is_told_where_one_was_asked_for(
    model: str, capsys: pytest.CaptureFixture[str], second: str
) -> None:
    settings = build(Settings, {"integrated_gradients": {"second_baseline": second}}, "test")
    told = explain_by(Subject.load(model), TEXT, settings, ("integrated_gradients",), whole=False)
    show(told)
    options = told.told("integrated_gradients").attribution.options  # type: ignore[union-attr]
    lines = [line for line in capsys.readouterr().out.splitlines() if "ranks of words agree" in line]
    if second == "none":
        assert lines == [] and "baseline_agreement" not in options
    else:
        [line] = lines
        assert line.strip().startswith("from the baseline zero as from mask:")
        assert f"Spearman {options['baseline_agreement']:.2f}, Kendall {options['baseline_kendall']:.2f}" in line
