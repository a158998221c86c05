"""A text classifier and its tokenizer, as one thing that can be asked: ids, logits, margins, embeddings, baselines.

The model stays as it was given: it is set to evaluation mode, and no parameter, buffer or config is ever changed.
Answers are those of the model's own forward on one text without padding; this is tried once when a subject is made.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from veedor.errors import SubjectError, UsageError, unknown
from veedor.records import SubjectCard
from veedor.subjects import anatomy, forward, heads, trial
from veedor.subjects.encoding import Batch, Encoding, cut, encode_texts, pad
from veedor.subjects.model_card import Declared, describe, read_model_card
from veedor.subjects.own_switches import attention_type_kept, switches_by_length

if TYPE_CHECKING:
    import torch

Baseline = Literal["mask", "pad", "zero", "mean"]


class NoEmbeddingsError(SubjectError):
    """The model does not take word embeddings in the place of ids; `code` is the reason, for a report."""

    code = "no_embeddings"


class Subject:
    """What is asked of a model under audit.

    `model` and `tokenizer` are the transformers objects (evaluation mode; float32, or float64 if given so), `card` says
    who it is, `labels` and `head` how it decides, `window` how many tokens it reads.
    """

    card: SubjectCard

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        head: str = "auto",
        name: str = "in-memory model",
        declared: Declared | None = None,
    ) -> None:
        """Wrap a model in memory; SubjectError where it is no text classifier that can be asked."""
        self.name = name
        self.tokenizer = anatomy.require_offsets(tokenizer, name)
        self.model = anatomy.in_full_precision(model).eval()
        self.labels = anatomy.labels_of(self.model.config, name)
        anatomy.require_known_ids(self.model, tokenizer, name)
        self.window = anatomy.window_of(self.model, tokenizer)
        self._offset = anatomy.position_offset(self.model)
        self._reading = heads.reading_of(self.model)
        self._equal_lengths, self._takes_embeddings = False, True
        answers = trial.answers_alone(self)
        self._equal_lengths = switches_by_length(self.model) or not trial.padding_is_harmless(self, answers)
        self._takes_embeddings = trial.embeddings_are_taken(self, answers)
        outputs = self._outputs(answers[0].shape[0])
        self.head: heads.Head = heads.resolve_head(
            head, problem_type=getattr(self.model.config, "problem_type", None), outputs=outputs, name=name
        )
        self.card = describe(self, declared or Declared(stored_dtype=anatomy.dtype_of(model)))

    @classmethod
    def load(cls, path: str | Path, *, head: str = "auto", trust_pickle: bool = False, name: str | None = None) -> Self:
        """Load a Hugging Face folder, or an MLflow model folder with the transformers flavour, without network.

        safetensors only unless `trust_pickle`; code that comes with a model is never run. SubjectError says why a
        folder cannot be audited.
        """
        from veedor.subjects.loading import load_folder

        shown = name or str(path)
        loaded = load_folder(Path(path), name=shown, trust_pickle=trust_pickle)
        declared = read_model_card(loaded.cards, stored_dtype=loaded.stored_dtype)
        return cls(loaded.model, loaded.tokenizer, head=head, name=shown, declared=declared)

    def target_index(self, label: str) -> int:
        """Index of a label; UsageError names the nearest one."""
        if label not in self.labels:
            raise UsageError(f"{unknown('label', label, self.labels)} (labels of {self.name})")
        return self.labels.index(label)

    def logits(self, batch: Batch) -> "torch.Tensor":
        """The classifier's outputs, (b, outputs), as for each text alone and without padding."""
        with attention_type_kept(self.model):
            if forward.head_is_apart(self.model):
                return forward.at_row(self.model, self.embed(batch), batch, self.read_row(batch))
            return forward.whole(self.model, batch, input_ids=batch.ids)

    def logits_from_embeddings(self, embeddings: "torch.Tensor", batch: Batch) -> "torch.Tensor":
        """The outputs where word embeddings (b, n, d) stand in the place of the batch's ids."""
        if not self._takes_embeddings:
            raise NoEmbeddingsError(
                f"{self.name} ({type(self.model).__name__}) does not give the same answer to its own word embeddings "
                "as to ids, so no gradient can be taken; choose a method without gradients: occlusion, rollout"
            )
        with attention_type_kept(self.model):
            if forward.head_is_apart(self.model):
                return forward.at_row(self.model, embeddings, batch, self.read_row(batch))
            return forward.whole(self.model, batch, inputs_embeds=embeddings)

    def embed(self, batch: "Batch | torch.Tensor") -> "torch.Tensor":
        """Word embeddings (b, n, d) of a batch or of ids: what the model takes as `inputs_embeds`."""
        ids = batch.ids if isinstance(batch, Batch) else batch
        embedded: torch.Tensor = self.model.get_input_embeddings()(ids)
        return embedded

    def margin(self, logits: "torch.Tensor", target_index: int, *, scale: heads.Scale = "logit") -> "torch.Tensor":
        """The target's log-odds against the other labels (softmax) or its logit, (b,) float64; or its probability."""
        return heads.margin(logits, target_index, head=self.head, labels=len(self.labels), scale=scale)

    def probabilities(self, logits: "torch.Tensor") -> "torch.Tensor":
        """Each label's probability, (b, labels) float64."""
        return heads.probabilities(logits, head=self.head, labels=len(self.labels))

    def read_row(self, batch: Batch) -> "torch.Tensor":
        """Index of the map's row that the head reads, (b,) int64; (b, n) float64 weights where it reads a mean."""
        config = anatomy.text_config(self.model)
        marker = getattr(config, "eos_token_id" if self._reading == "eos" else "pad_token_id", None)
        return heads.read_row(batch.ids, batch.mask, reading=self._reading, marker=marker)

    @property
    def takes_embeddings(self) -> bool:
        """Whether the model answers its own word embeddings as it answers ids: gradients need that."""
        return self._takes_embeddings

    @property
    def mask_id(self) -> int | None:
        """The mask token, if there is one."""
        return anatomy.known_id(self.tokenizer.mask_token_id)

    @property
    def pad_id(self) -> int | None:
        """The padding token, if there is one."""
        return anatomy.known_id(self.tokenizer.pad_token_id)

    @property
    def unk_id(self) -> int | None:
        """The unknown token, if there is one."""
        return anatomy.known_id(self.tokenizer.unk_token_id)

    @property
    def device(self) -> "torch.device":
        """Where the model's parameters are."""
        device: torch.device = next(self.model.parameters()).device
        return device

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Token ids of each text, cut to the window, with offsets and words; in input order."""
        return encode_texts(self.tokenizer, texts, window=self.window, lone_id=self._lone_id)

    def batches(self, encodings: Sequence[Encoding], *, size: int = 32) -> list[Batch]:
        """Batches of at most `size`, cut by content; each encoding once, `rows` says where it came from."""
        return [
            self._batch(rows, [encodings[row] for row in rows])
            for rows in cut(encodings, size=size, equal_lengths=self._equal_lengths)
        ]

    def baseline_ids(self, batch: Batch, kind: Baseline = "mask") -> "torch.Tensor | None":
        """Ids (b, n) with every token but the special ones replaced; None where no token can stand for `kind`."""
        import torch

        filler = {"mask": self.pad_id if self.mask_id is None else self.mask_id, "pad": self.pad_id}.get(kind)
        return None if filler is None else torch.where(batch.special, batch.ids, torch.full_like(batch.ids, filler))

    def baseline(self, batch: Batch, kind: Baseline = "mask") -> "torch.Tensor":
        """Embeddings (b, n, d) of a text without content: special tokens kept, all others replaced.

        "mask": the mask token's, the padding token's where there is none, zero where there is neither; "pad", "zero";
        "mean": the mean row of the embedding matrix.
        """
        import torch

        ids = self.baseline_ids(batch, kind)
        if ids is not None:
            return self.embed(ids)
        kept = self.embed(batch)
        filler = self._mean_embedding() if kind == "mean" else torch.zeros_like(kept[0, 0])
        return torch.where(batch.special.unsqueeze(-1), kept, filler)

    def _mean_embedding(self) -> "torch.Tensor":
        """Mean row of the embedding matrix as the embedding layer hands it on, scaling included, (d,)."""
        import torch

        layer = self.model.get_input_embeddings()
        ids = torch.arange(layer.weight.shape[0], device=self.device)
        total = torch.stack([self.embed(part).double().sum(dim=0) for part in torch.split(ids, 8192)]).sum(dim=0)
        mean: torch.Tensor = (total / len(ids)).to(layer.weight.dtype)
        return mean

    def _batch(self, rows: Sequence[int], encodings: Sequence[Encoding]) -> Batch:
        import torch

        ids = [own.ids or (self._lone_id,) for own in encodings]
        special = [own.special or (True,) for own in encodings]
        padded = torch.tensor(pad(ids, self._lone_id if self.pad_id is None else self.pad_id), device=self.device)
        return Batch(
            rows=tuple(rows),
            ids=padded,
            mask=torch.tensor(pad([[1] * len(own) for own in ids], 0), device=self.device),
            position_ids=None if self._offset is None else anatomy.positions(padded, self._offset),
            special=torch.tensor(pad(special, 1), dtype=torch.bool, device=self.device),
        )

    @property
    def _lone_id(self) -> int:
        """The special token that stands for a text without tokens, and fills where there is no padding token."""
        of = self.tokenizer
        found = (of.eos_token_id, of.bos_token_id, of.pad_token_id, of.unk_token_id)
        return next((int(index) for index in found if index is not None), 0)

    def _outputs(self, outputs: int) -> int:
        """The number of logits; SubjectError where it does not fit the labels."""
        if outputs == len(self.labels) or (outputs == 1 and len(self.labels) == 2):
            return outputs
        raise SubjectError(
            f"{self.name} has {outputs} logits for {len(self.labels)} labels ({', '.join(self.labels)}); expected one "
            "logit a label: correct id2label in config.json"
        )


@contextmanager
def frozen(subject: Subject) -> Iterator[None]:
    """No parameter takes a gradient while the block lasts; each is then put back as it was, also after an error."""
    before = [(parameter, parameter.requires_grad) for parameter in subject.model.parameters()]
    try:
        for parameter, _ in before:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter, flag in before:
            parameter.requires_grad_(flag)
