"""Metric names are stable, valid and different; nothing undefined becomes a number."""

import math
import re

from pipeline.names import LONGEST, metric_names, named, parameters
from veedor.settings import Settings

VALID = re.compile(r"[/\w.\- :]+")  # MLflow's own rule


def test_a_name_is_the_hypothesis_id_with_dots() -> None:
    assert metric_names("veedor.effect", ["group/religion/muslim"]) == {
        "group/religion/muslim": "veedor.effect.group.religion.muslim"
    }


def test_any_term_gets_a_name_that_mlflow_takes() -> None:
    terms = ["a@b", "100 %", "who prays at a mosque", "sordo/a", "nationality.x", "árabe", "<b>", "-"]
    for name in metric_names("veedor.effect", [f"term/axis/group/{term}" for term in terms]).values():
        assert VALID.fullmatch(name), name


def test_ids_that_would_share_a_name_both_get_a_tail_and_the_others_do_not() -> None:
    names = metric_names("m", ["term/a/g/x y", "term/a/g/x@y", "term/a/g/z"])
    assert len(set(names.values())) == 3
    assert names["term/a/g/z"] == "m.term.a.g.z"
    assert all(re.fullmatch(r"m\.term\.a\.g\.x_y-[0-9a-f]{8}", names[key]) for key in list(names)[:2])


def test_names_that_differ_by_case_only_stay_apart_in_stores_that_ignore_case() -> None:
    names = metric_names("m", ["term/a/g/US", "term/a/g/us"])
    assert len({name.casefold() for name in names.values()}) == 2


def test_long_names_are_cut_and_stay_apart() -> None:
    names = metric_names("m", ["term/a/g/" + "x" * 300 + "1", "term/a/g/" + "x" * 300 + "2"])
    assert len(set(names.values())) == 2
    assert all(len(name) <= LONGEST for name in names.values())


def test_nothing_undefined_becomes_a_number() -> None:
    assert named("m", {"a": math.nan, "b": math.inf, "c": -math.inf, "d": None, "e": 0.25}) == {"m.e": 0.25}


def test_every_setting_and_policy_key_is_a_parameter() -> None:
    found = parameters(Settings())
    assert {f"settings.{key}" for key in Settings.model_fields if key != "policy"} <= set(found)
    assert found["policy.scopes"] == '["group", "term"]' and found["settings.target"] == "null"
