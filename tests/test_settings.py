"""Settings and policy files: what is refused, and that the refusal is in plain words."""

from pathlib import Path

import pytest

from veedor.errors import UsageError
from veedor.settings import read_policy, read_settings


def refusal(folder: Path, text: str) -> str:
    """What is said of a settings file."""
    file = folder / "s.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as told:
        read_settings(file)
    return str(told.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("policy: {margin: true}", "policy.margin: expected a number (got True)"),
        ("policy: {margin: '0.5'}", "policy.margin: expected a number (got '0.5')"),
        ("limit: 1.5", "limit: expected a whole number (got 1.5)"),
        ("threshold: 2", "threshold: expected a number below 1 (got 2)"),
        ("policy: {groups: 3}", "policy.groups: expected all, or a list of names (got 3)"),
        ("policy: {scale: probability}", "policy: scale: probability needs an explicit margin"),
        ("languages: [xx]", "languages.0: expected 'en' or 'es' (got 'xx')"),
        ("policy: {waivers: [{hypothesis: h, owner: o, reason: r}]}", "policy.waivers.0.expires: is missing"),
    ],
)
def test_a_wrong_value_is_refused_in_plain_words_and_once(tmp_path: Path, text: str, said: str) -> None:
    told = refusal(tmp_path, text)
    assert f"s.yaml: {said}" in told
    assert not any(jargon in told for jargon in (";", "Value error", "Tuple", "literal[", "Input should"))


def test_a_whole_number_and_an_exponent_are_numbers(tmp_path: Path) -> None:
    """YAML 1.1 reads 1e-3 as text."""
    file = tmp_path / "p.yaml"
    file.write_text("margin: 1\nalpha: 1e-3\n")
    policy = read_policy(file)
    assert (policy.margin, policy.alpha) == (1.0, 0.001)


def test_a_key_that_stands_twice_is_named_with_its_lines(tmp_path: Path) -> None:
    assert "the key 'seed' stands twice, in lines 1 and 3" in refusal(tmp_path, "seed: 1\nlimit: 5\nseed: 2\n")
    assert "the key 'alpha' stands twice" in refusal(tmp_path, "policy:\n  alpha: 0.1\n  alpha: 0.2\n")
