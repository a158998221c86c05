"""What a lexicon file may not say, and that the message names the culprit."""

from pathlib import Path

import pytest

from veedor.errors import EvaluationSetError
from veedor.evaluation.lexicon_file import read_lexicon

GOOD = """
language: en
version: 1
axes:
  religion:
    names: {en: Religion, es: Religión}
    groups:
      muslim:
        names: {en: Muslim people, es: personas musulmanas}
        terms:
          - {term: muslim, adj: Muslim, noun: [Muslim, Muslims], band: 4.66}
      jewish:
        names: {en: Jewish people, es: personas judías}
        terms:
          - {term: jewish, adj: Jewish, band: 4.6, also: {noun: [[Jew, Jews]]}}
controls:
  adj:
    - {term: tall, adj: tall, band: 4.5, valence: 0.0}
  noun:
    - {term: commuter, noun: [commuter, commuters], band: 3.4, valence: 0.0}
"""


def read(tmp_path: Path, content: str):
    path = tmp_path / "en.yaml"
    path.write_text(content, encoding="utf-8")
    return read_lexicon(path)


def test_a_good_file_gives_forms_by_slot_class(tmp_path: Path):
    lexicon = read(tmp_path, GOOD)
    assert [(form.surface, form.slot) for form in lexicon.terms()] == [
        ("Muslim", "adj"),
        ("Muslim", "noun"),
        ("Muslims", "noun-p"),
        ("Jewish", "adj"),
    ]
    assert [form.surface for form in lexicon.terms(generate=False)] == ["Jew", "Jews"]
    assert lexicon.slots == ("adj", "noun", "noun-p")
    assert lexicon.group_names["religion/jewish"]["es"] == "personas judías"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("valence: 0.0}\n  noun", "valense: 0.0}\n  noun", "unknown key 'valense'; did you mean 'valence'"),
        ("version: 1", "version: 1\nversion: 2", "'version' stands twice"),
        ("term: jewish", "term: muslim", "term 'muslim' stands twice in axis religion \\(muslim and jewish\\)"),
        ("term: tall, adj: tall", "term: jewish, adj: Jewish", "'Jewish' is both the term 'jewish'"),
        ("adj: Jewish", "adj: Muslim", "'Muslim' is a surface of 'muslim' .* and of 'jewish'"),
        ("term: jewish", "term: Jewish", "must be lower case: 'jewish'"),
        (", adj: Jewish", "", "'jewish' has no surface|adj"),
        ("valence: 0.0}\n  noun", "valence: 1.2}\n  noun", "valence: expected 0 or less \\(got 1.2\\)"),
        (", valence: 0.0}\n  noun", "}\n  noun", "neither `valence: 0.0` nor `reviewed: true`"),
        ("adj: tall", "phrase: tall", "must have the key 'adj'"),
        ("band: 4.66", "band: 4.66, search: people", "no `people:` section"),
        ("[Muslim, Muslims]", "[Muslim]", "noun"),
        (
            "    - {term: tall, adj: tall, band: 4.5, valence: 0.0}\n",
            "    - {term: tall, adj: tall, valence: 0.0}\n    - {term: tall, adj: tall, valence: 0.0}\n",
            "control 'tall' stands twice",
        ),
    ],
)
def test_faults_are_named(tmp_path: Path, old: str, new: str, message: str):
    assert old in GOOD
    content = GOOD.replace(old, new)
    if "no surface" in message:
        content = content.replace(", also: {noun: [[Jew, Jews]]}", "")
    with pytest.raises(EvaluationSetError, match=message):
        read(tmp_path, content)


def test_agreement_of_spanish_forms_becomes_the_slot_class(tmp_path: Path):
    spanish = GOOD.replace("adj: Muslim, noun: [Muslim, Muslims]", "adj: {ms: x, fs: xa}, noun: {f: [xa, xas]}")
    forms = read(tmp_path, spanish).terms(axis="religion")
    assert [(form.surface, form.slot) for form in forms][:4] == [
        ("x", "adj-ms"),
        ("xa", "adj-fs"),
        ("xa", "noun-fs"),
        ("xas", "noun-fp"),
    ]


def test_a_file_that_is_no_yaml_mapping_is_refused(tmp_path: Path):
    with pytest.raises(EvaluationSetError, match="holds a list"):
        read(tmp_path, "- a\n")
    with pytest.raises(EvaluationSetError, match="cannot read"):
        read(tmp_path, "a: [")
