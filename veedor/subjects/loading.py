"""A model folder on this machine to a transformers model and tokenizer, without network and without running its code.

Refused, each by name: pickled weights (unless trusted), code that comes with a model, adapters, checkpoints without a
trained head. Half-precision weights are read as float32; what was stored is remembered. MLmodel files are read as YAML:
MLflow's own loader would turn remote code on by itself.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from veedor.errors import SubjectError

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
STORED = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


@dataclass(frozen=True)
class Folders:
    """Where the parts of a model lie, and which files may say something about it, the first first."""

    model: Path
    tokenizer: Path
    cards: tuple[Path, ...]


@dataclass(frozen=True)
class Loaded:
    """What a folder held."""

    model: Any
    tokenizer: Any
    stored_dtype: str | None
    cards: tuple[Path, ...]


def load_folder(path: Path, *, name: str, trust_pickle: bool = False) -> Loaded:
    """Read a Hugging Face or MLflow model folder; SubjectError names what cannot be used and the way out."""
    if not path.is_dir():
        raise SubjectError(f"no model folder at {path}; expected a Hugging Face or MLflow model folder on this machine")
    folders = parts_of(path, name)
    config = read_json(folders.model / "config.json", name)
    require_classifier(config, folders, name)
    require_safe_weights(folders.model, name, trust_pickle=trust_pickle)
    require_readable_config(folders.model, name)
    tokenizer = load_tokenizer(folders.tokenizer, name)
    stored = stored_dtype(folders.model) or config.get("dtype") or config.get("torch_dtype")
    return Loaded(load_model(folders.model, name, trust_pickle=trust_pickle), tokenizer, stored, folders.cards)


def parts_of(path: Path, name: str) -> Folders:
    """Model and tokenizer folders: the folder itself, or what its MLmodel file says."""
    if not (path / "MLmodel").is_file():
        if (path / "adapter_config.json").is_file():
            raise _adapter(name)
        return Folders(path, path, (path / "README.md",))
    flavour = transformers_flavour(path / "MLmodel", name)
    if flavour.get("peft_adaptor") or (path / "peft").is_dir():
        raise _adapter(name)
    model = path / str(flavour.get("model_binary", "model"))
    if not model.is_dir():
        raise SubjectError(
            f"{name} holds no weights: its MLmodel names {flavour.get('source_model_name')!r} on a hub, which is not "
            "downloaded; log it with save_pretrained=True"
        )
    component = path / "components" / "tokenizer"
    cards = (path / "model_card.md", path / "model_card_data.yaml", model / "README.md")
    return Folders(model, component if component.is_dir() else model, cards)


def transformers_flavour(file: Path, name: str) -> dict[str, Any]:
    """The transformers flavour of an MLmodel file."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SubjectError(f"cannot read {file}: {error}; log the model again with mlflow.transformers") from error
    flavours = content.get("flavors") if isinstance(content, dict) else None
    flavour = flavours.get("transformers") if isinstance(flavours, dict) else None
    if not isinstance(flavour, dict):
        held = ", ".join(sorted(flavours)) if isinstance(flavours, dict) else "none"
        raise SubjectError(
            f"{name} has the flavours {held}, expected transformers; log it with mlflow.transformers.log_model, which "
            "keeps safetensors, config and tokenizer"
        )
    return flavour


def read_json(file: Path, name: str) -> dict[str, Any]:
    """A JSON object; SubjectError where there is none."""
    if not file.is_file():
        raise SubjectError(f"{name} has no {file.name} in {file.parent}; expected a folder written by save_pretrained")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SubjectError(f"cannot read {file}: {error}; expected JSON, as save_pretrained writes it") from error
    if not isinstance(content, dict):
        raise SubjectError(f"{file} holds a {type(content).__name__}, expected a JSON object")
    return content


def require_classifier(config: dict[str, Any], folders: Folders, name: str) -> None:
    """SubjectError unless this is a sequence classifier that transformers itself knows."""
    tokenizer_config = folders.tokenizer / "tokenizer_config.json"
    settings = read_json(tokenizer_config, name) if tokenizer_config.is_file() else {}
    for holder, content in (("config.json", config), ("tokenizer_config.json", settings)):
        if content.get("auto_map"):
            held = ", ".join(listed(content["auto_map"]))
            raise SubjectError(
                f"{name} needs code of its own ({holder} has auto_map: {held}); running it is "
                "refused, whoever wrote it: save the model with a class that transformers ships, without auto_map"
            )
    architectures = listed(config.get("architectures"))
    if not any(one.endswith("ForSequenceClassification") for one in architectures):
        raise SubjectError(
            f"{name} is {', '.join(architectures) or 'of no named architecture'}, expected a text classifier "
            "(…ForSequenceClassification in config.json); other models have no decision to audit"
        )


def listed(value: object) -> list[str]:
    """Names of a config's entry, whether it holds one, a list of them, or keys.

    >>> listed("own.Own"), listed({"b": 1, "a": 2}), listed(None)
    (['own.Own'], ['a', 'b'], [])
    """
    if isinstance(value, dict):
        return sorted(map(str, value))
    if isinstance(value, (list, tuple)):
        return [str(one) for one in value]
    return [] if value is None else [str(value)]


def require_readable_config(folder: Path, name: str) -> None:
    """SubjectError where transformers cannot make a config of config.json: the tokenizer's loader would be blamed."""
    from transformers import AutoConfig

    try:
        with quiet():
            AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # a damaged folder makes the loader raise anything
        raise SubjectError(
            f"{name} cannot be loaded: {said(error)}; correct {folder / 'config.json'}, or save the model again with "
            "save_pretrained"
        ) from error


def require_safe_weights(folder: Path, name: str, *, trust_pickle: bool) -> None:
    """SubjectError unless the weights are safetensors, or pickled and trusted."""
    if any(folder.glob("*.safetensors")):
        return
    pickled = sorted({file.name for pattern in PICKLES for file in folder.glob(pattern)})
    if not pickled:
        raise SubjectError(f"{name} has no weights in {folder}; expected model.safetensors")
    if not trust_pickle:
        raise SubjectError(
            f"{name} has only pickled weights ({', '.join(pickled[:3])}), and reading a pickle can run code; save the "
            "model again with save_pretrained (safetensors), or pass --trust-pickle if you trust who made it"
        )


def load_tokenizer(folder: Path, name: str) -> Any:
    """The tokenizer of a folder, without network and without its code."""
    from transformers import AutoTokenizer

    if not any((folder / own).is_file() for own in ("tokenizer.json", "tokenizer_config.json", "vocab.txt")):
        raise SubjectError(
            f"{name} has no tokenizer in {folder} (no tokenizer.json); save it there with tokenizer.save_pretrained"
        )
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # a damaged folder makes the loader raise anything
        raise SubjectError(
            f"the tokenizer of {name} cannot be loaded: {said(error)}; save it again with tokenizer.save_pretrained"
        ) from error


def load_model(folder: Path, name: str, *, trust_pickle: bool) -> Any:
    """The classifier in float32; SubjectError where weights are missing, as the loader would draw them by chance."""
    import torch
    from transformers import AutoModelForSequenceClassification

    pickled = trust_pickle and not any(folder.glob("*.safetensors"))
    try:
        with quiet():
            model, report = AutoModelForSequenceClassification.from_pretrained(
                folder,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=not pickled,
                weights_only=True,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
    except Exception as error:  # a damaged folder makes the loader raise anything
        raise SubjectError(
            f"{name} cannot be loaded: {said(error)}; save it again with save_pretrained, or look at {folder}"
        ) from error
    missing = sorted(map(str, report["missing_keys"])) + sorted(str(own[0]) for own in report["mismatched_keys"])
    if missing:
        raise SubjectError(
            f"{name} lacks weights ({', '.join(missing[:4])}{' …' if len(missing) > 4 else ''}); they would be drawn "
            "by chance: expected a trained classifier, saved whole"
        )
    require_finite(model, name)
    return model


def require_finite(model: Any, name: str) -> None:
    """SubjectError where a weight is NaN or infinite; whatever the model answered would be too."""
    import torch

    broken = [key for key, tensor in model.named_parameters() if not torch.isfinite(tensor).all()]
    if broken:
        more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
        raise SubjectError(
            f"the weights of {name} hold values that are not finite (tensor {broken[0]}{more}); they are damaged, or "
            "training diverged: save a sound checkpoint"
        )


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bar and no table of weights from transformers: what matters of it becomes an error of ours."""
    from transformers import utils

    logging: Any = utils.logging
    level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()


def said(error: Exception) -> str:
    """The first lines of what a loader said."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def stored_dtype(folder: Path) -> str | None:
    """Floating type in which most of a folder's weights are stored, from the headers of its safetensors files."""
    from safetensors import SafetensorError, safe_open

    sizes: dict[str, int] = {}
    for file in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(file, framework="pt") as weights:
                for key in weights.keys():
                    own = weights.get_slice(key)
                    size = 1
                    for length in own.get_shape():
                        size *= length
                    sizes[own.get_dtype()] = sizes.get(own.get_dtype(), 0) + size
        except (OSError, SafetensorError) as error:
            raise SubjectError(f"cannot read {file}: {error}; save the model again with save_pretrained") from error
    floats = {name: size for name, size in sizes.items() if name in STORED}
    return STORED[max(floats, key=lambda name: floats[name])] if floats else None


def _adapter(name: str) -> SubjectError:
    return SubjectError(
        f"{name} is an adapter without its base model; merge them (merge_and_unload) and save the whole classifier"
    )
