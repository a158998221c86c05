"""The page computes what Python computes, says it in both languages, needs nothing from outside and trusts no text."""

import base64
import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.explain_answers import Explained, explain_by
from pipeline.explain_data import packed, words_in
from pipeline.explain_maps import AttentionMaps, maps_of
from pipeline.explain_page import page, write_page
from tests.pipeline.pages import browser, data_of, driven, loaded, result, run_script, seen
from tests.subjects import families
from veedor.attribution.rollout import rollout
from veedor.settings import Settings
from veedor.subjects import Subject
from veedor.subjects.tiny import untrained, whole_word_tokenizer

TEXT = "the tall tenant met a Muslim commuter at the bus stop."
NAMED = ("rollout", "attention", "occlusion", "input_x_gradient")
HOSTILE = 'old </script><b onload="x">&amp; \u202e\x00 \U0001f469\u200d\U0001f680 مرحبا\u2028 ' + "w" * 300


def explained(subject: Subject, text: str = TEXT, methods: tuple[str, ...] = NAMED) -> Explained:
    return explain_by(subject, text, Settings(), methods, whole=True)


@pytest.fixture(scope="module")
def bert() -> Explained:
    return explained(families.subject("bert"))


@pytest.fixture(scope="module")
def decoder() -> Explained:
    return explained(families.subject("gpt2"))


@pytest.fixture(scope="module")
def files(bert: Explained, decoder: Explained, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, told in (("bert", bert), ("decoder", decoder)):
        write_page(folder / f"{name}.html", told, "en")
    return {name: folder / f"{name}.html" for name in ("bert", "decoder")}


def maps(of: Explained) -> AttentionMaps:
    assert of.maps is not None
    return of.maps


def by_head(values: np.ndarray, head: int, residual: float) -> np.ndarray:
    """Appendix A.1: the residual-mixed head of the top layer times the mean-fused rollout below, in float64."""
    top = (1 - residual) * values[-1, head].astype(float) + residual * np.eye(values.shape[-1])
    return top @ rollout(values[:-1].astype(float), residual=residual) if len(values) > 1 else top


def assert_same(found: list[float], expected: np.ndarray) -> None:
    assert len(found) == len(expected)
    assert np.abs(np.array(found) - expected).max() <= 1e-6 * np.abs(expected).max()


def test_the_maps_are_those_the_model_returns_itself() -> None:
    subject = families.subject("bert")
    subject.model.set_attn_implementation("eager")
    with torch.no_grad():
        eager = subject.model(**subject.tokenizer(TEXT, return_tensors="pt"), output_attentions=True).attentions
    found = maps_of(subject, subject.encode([TEXT])[0])
    assert found is not None
    np.testing.assert_allclose(found.values, torch.cat(eager).numpy(), atol=1e-6)
    assert found.read[0] == 1 and not found.causal and not found.fused


def test_the_page_opens_with_pythons_own_rollout(bert: Explained, files: dict[str, Path]) -> None:
    shown = result(loaded(files["bert"]))
    told = bert.told("rollout")
    assert told is not None
    assert_same(shown["scores"]["tokens"], np.array(told.tokens))
    assert_same(shown["scores"]["words"], told.attribution.word_scores)


def test_a_browser_follows_one_head_as_python_does(bert: Explained, files: dict[str, Path]) -> None:
    document = loaded(files["bert"], "method=rollout&residual=0.3&layer=2&head=2&row=4&language=es")
    shown = result(document)
    assert (shown["layer"], shown["residual"], shown["head"], shown["language"]) == (2, 0.3, 1, "es")
    assert_same(shown["scores"]["tokens"], by_head(maps(bert).values[:2], 1, 0.3)[3])
    assert '<html lang="es">' in document and words_in("es")["explain"]["scores"] in document


def test_a_browser_fuses_heads_by_their_largest_and_shows_the_difference_to_position(
    decoder: Explained, files: dict[str, Path]
) -> None:
    shown = result(loaded(files["decoder"], "residual=0.2&head=max&reference=uniform&unit=tokens"))
    values = maps(decoder).values.astype(float)
    n = values.shape[-1]
    uniform = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    plain = rollout(np.stack([uniform] * len(values)), residual=0.2)
    assert_same(shown["scores"]["tokens"], (rollout(values, residual=0.2, fusion="max") - plain)[-1])


def test_an_address_cannot_ask_for_what_there_is_not(files: dict[str, Path]) -> None:
    wrong = "method=%3Cb%3E&layer=99&head=7&row=0&residual=1e9&target=nobody&language=xx&unit=__proto__&toString=1"
    assert result(loaded(files["bert"], wrong)) == result(loaded(files["bert"]))


def test_special_tokens_can_be_left_out_and_their_share_is_said(bert: Explained, files: dict[str, Path]) -> None:
    document = loaded(files["bert"], "specials=drop&unit=tokens")
    scores, special = result(document)["scores"], list(bert.encoding.special)
    told = np.array(bert.found["rollout", None].tokens, dtype=float)
    assert [score is None for score in scores["tokens"]] == special
    assert scores["specials"] == pytest.approx(told[special].sum(), rel=1e-6)
    assert np.nansum(np.array(scores["tokens"], dtype=float)) == pytest.approx(1 - scores["specials"])
    assert f"{100 * scores['specials']:.1f}\u00a0%" in document or f"{100 * scores['specials']:.1f}&nbsp;%" in document


def test_the_keyboard_reaches_every_word_and_every_choice(files: dict[str, Path]) -> None:
    code = """
      const at = (id) => document.getElementById(id);
      const words = () => [...at("text").querySelectorAll("[role=button]")];
      const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      const stops = words().filter((word) => word.tabIndex === 0).length;
      words()[0].focus();
      ["ArrowRight", "ArrowRight", "ArrowLeft", "Enter"].forEach(press);
      const kept = words().map((word) => word.getAttribute("aria-pressed"));
      const readout = at("readout").textContent;
      at("scores").querySelector("th[data-key=score] button").click();
      const order = at("scores").querySelector("th[data-key=score]").getAttribute("aria-sort");
      at("method").value = "occlusion";
      at("method").dispatchEvent(new Event("change"));
      return JSON.stringify({ stops, kept, readout, order, hash: location.hash });
    """
    done = driven(files["bert"], code)
    assert done["stops"] == 1 and done["kept"].index("true") == 1 and done["kept"].count("true") == 1
    assert done["readout"].startswith("tall: 0.") and done["order"] == "descending"
    assert done["hash"] == "#method=occlusion"


@pytest.mark.parametrize("head", ["mean", "max", "min", 0, 3])
@pytest.mark.parametrize("residual", [0.0, 0.35])
def test_the_pages_arithmetic_is_pythons(bert: Explained, head: str | int, residual: float) -> None:
    values = maps(bert).values
    start = np.linspace(0, 1, values.shape[-1])
    code = """
      const maps = { ...given.maps, values: Rollout.unpack(given.maps.values) };
      const { row, head, residual } = given;
      return Array.from(Rollout.engine(maps).drawn({ row, upto: maps.layers, head, residual }));
    """
    found = run_script(code, {"maps": packed(maps(bert)), "row": start.tolist(), "head": head, "residual": residual})
    if isinstance(head, int):
        expected = by_head(values, head, residual)
    else:
        expected = rollout(values.astype(float), residual=residual, fusion=head)
    assert_same(found, start @ expected)


def test_a_row_of_zeros_is_refused_and_not_shown_as_numbers() -> None:
    code = """
      const maps = { tokens: 2, heads: 2, layers: 1, values: Float32Array.from([1, 0, 1, 0, 0, 1, 0, 1]) };
      const ask = (residual) => () => Rollout.engine(maps).drawn({ row: [1, 0], upto: 1, head: "min", residual });
      const said = (ask) => { try { return Array.from(ask()); } catch (error) { return error.message; } };
      return [said(ask(0)), said(ask(0.5))];
    """
    assert run_script(code, None) == ["empty", [1, 0]]


def test_words_take_sums_or_maxima_as_in_python() -> None:
    code = "return [true, false].map((sum) => Rollout.words(given, [-1, 0, 0, 1, -1, 2], 4, sum));"
    assert run_script(code, [9, 1, -3, 2, 9, None]) == [[-2, 2, None, None], [1, 2, None, None]]


@pytest.mark.parametrize("language", ["en", "es"])
def test_without_scripts_the_result_of_the_default_method_stands_there(bert: Explained, language: str) -> None:
    parsed = seen(page(bert, language))
    words = words_in(language)
    told = bert.told("rollout")
    assert told is not None
    for word, score in zip(told.attribution.words, told.attribution.word_scores, strict=True):
        assert word in parsed.text and words.number(float(score), 4) in parsed.text
    assert words["method_names"]["rollout"] in parsed.text and words["explain"]["no_script"] in parsed.text


def test_the_page_loads_nothing_and_allows_only_what_it_holds(bert: Explained) -> None:
    content = page(bert, "en")
    parsed = seen(content)
    [policy] = [tag["content"] for _, tag in parsed.tags if tag.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and policy.startswith("default-src 'none'") and "unsafe" not in policy
    scripts = [body for body in parsed.inner["script"] if not body.startswith("{")]
    for body in [*scripts, *parsed.inner["style"]]:
        assert base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() in policy
    assert len(scripts) == 3 and "://" not in content
    attributes = {name for _, tag in parsed.tags for name in tag}
    assert not [name for name in attributes if name.startswith("on") or name in ("src", "href", "style")]


def test_every_control_has_a_label_and_every_place_a_name_of_its_own(bert: Explained) -> None:
    tags = seen(page(bert, "en")).tags
    ids = [tag["id"] for _, tag in tags if "id" in tag]
    assert len(ids) == len(set(ids))
    labelled = {tag["for"] for name, tag in tags if name == "label"}
    assert {tag["id"] for name, tag in tags if name in ("select", "input")} <= labelled
    named = {tag[key] for _, tag in tags for key in ("aria-labelledby", "aria-describedby") if key in tag}
    assert named <= set(ids) and {"status"} <= {tag.get("role") for _, tag in tags}


def test_the_page_says_nothing_in_a_language_that_the_words_do_not_hold() -> None:
    """Whatever the script or the template asks for stands in both languages."""
    folder = Path(__file__).resolve().parents[2] / "reports" / "templates"
    script = "".join((folder / name).read_text(encoding="utf-8") for name in ("explain.js", "explain.state.js"))
    asked = set(re.findall(r'\b(?:say|soft|kind)\("(\w+)"', script))
    asked |= set(re.findall(r'(?:\bt\.|data-t=")(\w+)', (folder / "explain.html.j2").read_text(encoding="utf-8")))
    assert len(asked) > 50
    for language in ("en", "es"):
        assert asked - {"against", "for"} <= set(words_in(language)["explain"])


@pytest.fixture(scope="module")
def hostile() -> Explained:
    tokenizer = whole_word_tokenizer(("an old person sang .",))
    model = untrained(tokenizer, ("fine </script><script>alert(1)</script>", 'b"ad\u202e & worse'), seed=1)
    return explained(Subject(model, tokenizer, name="<img src=x onerror=alert(1)>\u2029'"), HOSTILE)


def test_nothing_from_text_labels_or_names_becomes_markup(hostile: Explained, bert: Explained) -> None:
    content = page(hostile, "en")
    harmless = [name for name, _ in seen(page(bert, "en")).tags if name not in ("span", "tr", "th", "td", "bdi")]
    assert [name for name, _ in seen(content).tags if name not in ("span", "tr", "th", "td", "bdi")] == harmless
    assert not set("\u202e\x00") & set(content) and "\U0001f469\u200d\U0001f680" in content
    raw = content.split('id="data">')[1].split("</script>")[0]
    assert not set("<>&") & set(raw) and raw.isascii()
    assert data_of(content)["labels"] == ['b"ad & worse', "fine </script><script>alert(1)</script>"]
    assert data_of(content)["words"][1][1] == "</script><b"


def test_a_browser_shows_hostile_texts_as_texts(hostile: Explained, tmp_path: Path) -> None:
    browser()
    write_page(tmp_path / "page.html", hostile, "en")
    document = loaded(tmp_path / "page.html", "method=occlusion&unit=tokens")
    assert result(document)["method"] == "occlusion"
    assert not re.search(r"<(b|img)[ >]", document) and "<bdi>&lt;</bdi>" in document


def test_a_text_without_tokens_and_a_text_that_was_cut_have_pages(tmp_path: Path) -> None:
    subject = families.subject("gpt2")
    nothing = explained(subject, " ")
    assert data_of(page(nothing, "en"))["words"] == []
    cut = explained(subject, "old sailor sings " * 60)
    assert data_of(page(cut, "en"))["truncated"] and "old" in data_of(page(cut, "en"))["rest"]["words"]
    for name, told in (("nothing", nothing), ("cut", cut)):
        write_page(tmp_path / f"{name}.html", told, "es")
        assert result(loaded(tmp_path / f"{name}.html"))["scores"] is not None


def test_a_model_without_readable_attention_gets_a_page_of_the_methods_that_are_left() -> None:
    told = explained(families.subject("t5"), methods=("rollout", "occlusion"))
    data = data_of(page(told, "es"))
    assert told.asked == ("occlusion",) and data["maps"] is None
    assert "codificador" in data["failed"]["es"][0]["why"] and "encoder-decoder" in data["failed"]["en"][0]["why"]
    assert "rollout" not in [method["name"] for method in data["methods"]]


def test_heads_are_fused_and_at_last_maps_left_out_as_texts_grow() -> None:
    subject = families.subject("bert")
    [encoding] = subject.encode([TEXT])
    whole = maps_of(subject, encoding)
    assert whole is not None
    fused = maps_of(subject, encoding, most=whole.values.size - 1)
    assert fused is not None and fused.fused and fused.values.shape[1] == 1
    np.testing.assert_allclose(fused.values[:, 0], whole.values.mean(axis=1), atol=1e-7)
    assert maps_of(subject, encoding, most=fused.values.size - 1) is None


def test_the_same_text_gives_the_same_page(bert: Explained) -> None:
    again = explained(families.subject("bert"))
    assert page(again, "en") == page(bert, "en")


def test_labels_beyond_a_few_are_counted_and_not_explained() -> None:
    subject = families.subject("bert", labels=9, problem_type="single_label_classification")
    told = explain_by(subject, TEXT, Settings(target="LABEL_3"), ("occlusion",), whole=True)
    probable = [label for label, _ in sorted(told.answers, key=lambda pair: -pair[1]) if label != "LABEL_3"]
    assert told.targets == ("LABEL_3", *probable[:5])
    assert data_of(page(told, "en"))["hidden_labels"] == 3
