"""Folders that can be loaded, and those that are refused with the reason and a way out."""

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml

from tests.subjects import families
from tests.subjects.families import TEXTS, answers
from veedor.errors import SubjectError
from veedor.subjects import Subject


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A tiny BERT as save_pretrained writes it."""
    folder = tmp_path_factory.mktemp("saved") / "tiny"
    families.model("bert", id2label={0: "fine", 1: "abusive"}).save_pretrained(folder)
    families.tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(saved, tmp_path / "tiny"))


def edit(file: Path, **values) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def as_mlflow(folder: Path, into: Path, **flavour) -> Path:
    """The layout that mlflow.transformers.save_model writes."""
    shutil.copytree(folder, into / "model", ignore=shutil.ignore_patterns("token*"))
    shutil.copytree(
        folder, into / "components" / "tokenizer", ignore=shutil.ignore_patterns("config*", "*.safetensors")
    )
    described = {"model_binary": "model", "components": ["tokenizer"], "task": "text-classification", **flavour}
    (into / "MLmodel").write_text(yaml.safe_dump({"flavors": {"transformers": described, "python_function": {}}}))
    return into


def test_a_saved_classifier_answers_as_the_one_in_memory(saved):
    loaded, made = Subject.load(saved), families.subject("bert")
    assert torch.equal(answers(loaded, TEXTS), answers(made, TEXTS))
    assert loaded.card.weights_digest == made.card.weights_digest
    assert loaded.card.tokenizer_digest == made.card.tokenizer_digest


def test_the_card_says_who_the_model_is(saved):
    card = Subject.load(saved, name="models:/tiny/1").card
    assert (card.name, card.architecture, card.model_type) == (
        "models:/tiny/1",
        "BertForSequenceClassification",
        "bert",
    )
    assert (card.labels, card.head, card.window) == (("fine", "abusive"), "softmax", 64)
    assert (card.stored_dtype, card.audited_dtype, card.language, card.licence) == ("float32", "float32", (), None)
    assert card.parameters == sum(own.numel() for own in families.model("bert").parameters())


def test_half_precision_is_loaded_as_float32_and_remembered(folder):
    families.model("bert").half().save_pretrained(folder)
    subject = Subject.load(folder)
    assert subject.card.stored_dtype == "float16"
    assert {own.dtype for own in subject.model.parameters()} == {torch.float32}


def test_an_mlflow_folder_is_read_without_mlflow(saved, tmp_path):
    subject = Subject.load(as_mlflow(saved, tmp_path))
    assert torch.equal(answers(subject, TEXTS), answers(Subject.load(saved), TEXTS))


@pytest.mark.parametrize("place", ["README.md", "model_card.md"])
def test_language_and_licence_are_those_declared_in_the_card(saved, tmp_path, place):
    mlflow = place == "model_card.md"
    root = as_mlflow(saved, tmp_path) if mlflow else Path(shutil.copytree(saved, tmp_path / "own"))
    (root / place).write_text("---\nlanguage:\n- es\n- no\nlicense: mit\n---\n# A card\n---\n")
    card = Subject.load(root).card
    assert (card.language, card.licence) == (("es", "no"), "mit")


@pytest.mark.parametrize("text", ["", "# no front matter", "---\n: {\n---\n", "---\nnever closed"])
def test_a_card_that_declares_nothing_is_no_error(folder, text):
    (folder / "README.md").write_text(text)
    assert Subject.load(folder).card.language == ()


def test_the_weights_digest_changes_with_one_weight_and_not_with_the_file_name(folder):
    before = Subject.load(folder).card
    model = families.model("bert")
    with torch.no_grad():
        model.classifier.bias[0] += 1e-3
    model.save_pretrained(folder)
    after = Subject.load(folder).card
    assert before.weights_digest != after.weights_digest
    assert before.tokenizer_digest == after.tokenizer_digest


def test_the_tokenizer_digest_does_not_depend_on_earlier_calls_but_on_what_it_does(folder):
    before = Subject.load(folder)
    before.tokenizer(["a", "b c"], padding=True, truncation=True, max_length=7)
    assert Subject(before.model, before.tokenizer).card.tokenizer_digest == before.card.tokenizer_digest
    edit(folder / "tokenizer_config.json", truncation_side="left")
    assert Subject.load(folder).card.tokenizer_digest != before.card.tokenizer_digest


def refused(folder: Path, said: str, **options) -> None:
    with pytest.raises(SubjectError, match=said):
        Subject.load(folder, **options)


def test_no_folder(tmp_path):
    refused(tmp_path / "nowhere", "no model folder at .*nowhere")


def test_no_config(folder):
    (folder / "config.json").unlink()
    refused(folder, "no config.json.*save_pretrained")


def test_a_config_that_is_no_json(folder):
    (folder / "config.json").write_text("{")
    refused(folder, "cannot read .*config.json")


def test_no_sequence_classifier(folder):
    edit(folder / "config.json", architectures=["BertForMaskedLM"])
    refused(folder, "is BertForMaskedLM, expected a text classifier")


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_that_comes_with_a_model_is_never_run(folder, file):
    marker = folder / "ran"
    (folder / "own.py").write_text(f"open({str(marker)!r}, 'w')\nclass Own: pass\n")
    edit(folder / file, auto_map={"AutoModelForSequenceClassification": "own.Own", "AutoTokenizer": ["own.Own", None]})
    refused(folder, f"needs code of its own .{file} has auto_map.*refused")
    refused(folder, "needs code of its own", trust_pickle=True)
    assert not marker.exists()


def test_a_type_that_transformers_does_not_know(folder):
    edit(folder / "config.json", model_type="made_up")
    refused(folder, "cannot be loaded: ValueError.*made_up")


def test_pickled_weights_are_refused_unless_trusted(folder):
    (folder / "model.safetensors").unlink()
    torch.save(families.model("bert").state_dict(), folder / "pytorch_model.bin")
    refused(folder, r"only pickled weights \(pytorch_model.bin\).*--trust-pickle")
    subject = Subject.load(folder, trust_pickle=True)
    assert torch.equal(answers(subject, TEXTS), answers(families.subject("bert"), TEXTS))


def test_a_pickle_that_runs_code_does_not_run_it_even_where_it_is_trusted(folder):
    import pickle

    marker = folder / "ran"

    class Evil:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": Evil()}))
    refused(folder, "cannot be loaded", trust_pickle=True)
    assert not marker.exists()


def test_no_weights(folder):
    (folder / "model.safetensors").unlink()
    refused(folder, "has no weights in .*expected model.safetensors")


def test_damaged_weights(folder):
    (folder / "model.safetensors").write_bytes(b"\x00" * 64)
    refused(folder, "save(d)? .*again")


def test_a_head_that_was_never_trained_is_not_drawn_by_chance(folder):
    families.model("bert").bert.save_pretrained(folder)
    edit(folder / "config.json", architectures=["BertForSequenceClassification"])
    refused(folder, "lacks weights .classifier.bias, classifier.weight.")


def test_a_head_of_another_size_is_not_drawn_by_chance(folder):
    edit(folder / "config.json", id2label={"0": "a", "1": "b", "2": "c"}, label2id={"a": 0, "b": 1, "c": 2})
    refused(folder, "lacks weights .classifier")


def test_no_tokenizer(folder):
    for file in folder.glob("token*"):
        file.unlink()
    refused(folder, "has no tokenizer in")


def test_an_adapter(folder):
    (folder / "adapter_config.json").write_text("{}")
    refused(folder, "is an adapter without its base model; merge them")


def test_an_mlflow_folder_without_weights(saved, tmp_path):
    root = as_mlflow(saved, tmp_path, source_model_name="some/model")
    shutil.rmtree(root / "model")
    refused(root, "names 'some/model' on a hub, which is not downloaded; log it with save_pretrained=True")


def test_an_mlflow_folder_of_another_flavour(tmp_path):
    (tmp_path / "MLmodel").write_text(yaml.safe_dump({"flavors": {"sklearn": {}}}))
    refused(tmp_path, "has the flavours sklearn, expected transformers")


@pytest.mark.parametrize("text", ["flavors: [", "just text", "flavors: 3", "flavors: {transformers: 3}"])
def test_an_mlmodel_file_that_says_nothing(tmp_path, text):
    (tmp_path / "MLmodel").write_text(text)
    refused(tmp_path, "MLmodel|flavours")


@pytest.mark.parametrize("name", ["abuse-minilm", "sentiment-minilm"])
def test_a_real_classifier_answers_as_transformers_does(shared, name):
    from transformers import pipeline

    subject = Subject.load(shared / "models" / name)
    texts = ["I am a gay man.", "You are a wonderful person and I love this film", "get out of here, you idiot!"]
    own = pipeline("text-classification", model=subject.model, tokenizer=subject.tokenizer, top_k=None)(texts)
    found = subject.probabilities(answers(subject, texts))
    for row, expected in zip(found, own, strict=True):
        scores = {entry["label"]: entry["score"] for entry in expected}
        assert dict(zip(subject.labels, row.tolist(), strict=True)) == pytest.approx(scores, abs=1e-5)
    assert (subject.card.stored_dtype, subject.window) == ("float16", 512)


def test_a_tokenizer_with_more_ids_than_the_model_has_embeddings(folder):
    made = families.tokenizer()
    before = len(made)
    made.add_tokens(["zebra", "okapi"])
    made.save_pretrained(folder)
    refused(folder, f"has {before + 2} ids, but the model's embedding table has {before} rows")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_named(folder, value):
    model = families.model("bert")
    with torch.no_grad():
        model.classifier.bias[1] = value
    model.save_pretrained(folder)
    refused(folder, r"hold values that are not finite .tensor classifier.bias")


def test_names_given_as_text_are_not_taken_letter_by_letter(folder):
    edit(folder / "config.json", architectures="BertForMaskedLM")
    refused(folder, "is BertForMaskedLM, expected")
    edit(folder / "config.json", auto_map="own.Own")
    refused(folder, "auto_map: own.Own")


def test_a_wrong_value_in_the_config_is_not_blamed_on_the_tokenizer(folder):
    edit(folder / "config.json", hidden_size="x")
    with pytest.raises(SubjectError, match=r"hidden_size.*correct .*config.json") as told:
        Subject.load(folder)
    assert "tokenizer" not in str(told.value)
