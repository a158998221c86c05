"""A text classifier and its tokenizer, as one thing that can be asked: ids, logits, margins, embeddings, baselines.

The model stays as it was given: evaluation mode is the only thing that is set, and no parameter, buffer or config is
ever changed. Answers are those of the model's own forward on one text without padding; this is tried once when a
subject is made, and where padding would change an answer, only texts of equal length share a batch.
"""

import copy
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from veedor.errors import SubjectError, UsageError, unknown
from veedor.records import SubjectCard
from veedor.subjects import heads
from veedor.subjects.encoding import Batch, Encoding, cut, encode_texts, pad

if TYPE_CHECKING:
    import torch

Baseline = Literal["mask", "pad", "zero", "mean"]
UNBOUNDED = 8192  # tokens, where neither tokenizer nor config bounds a text
HUGE = 1_000_000  # tokenizers say 1e30 where they know no bound
TOLERANCE = 1e-4  # of a probe: rounding is far below it, a wrong position or row far above
PROBES = ("A short text.", "The second probe, which is a few words longer than the first one!")
WITHOUT_ATTENTION = ("integrated_gradients", "gradient", "input_x_gradient", "occlusion", "random")


class Subject:
    """What is asked of a model under audit.

    `model` and `tokenizer` are the transformers objects (evaluation mode, float32 unless float64 was given), `card`
    says who it is, `labels` and `head` how it decides, `window` how many tokens it reads.
    """

    card: SubjectCard

    def __init__(self, model: Any, tokenizer: Any, *, head: str = "auto", name: str = "in-memory model") -> None:
        """Wrap a model in memory; SubjectError where it is no text classifier that can be asked."""
        from veedor.subjects.card import describe_model

        self.tokenizer = require_offsets(tokenizer, name)
        stored = dtype_of(model)
        self.model = in_full_precision(model).eval()
        self.labels = labels_of(model.config, name)
        self.window = window_of(self.model, tokenizer)
        self.reading = heads.reading_of(self.model)
        self._offset = position_offset(self.model)
        self._equal_lengths = False
        outputs = self._try_out(name)
        self._require_outputs(outputs, name)
        self.head: heads.Head = heads.resolve_head(
            head, problem_type=self.model.config.problem_type, outputs=outputs, name=name
        )
        self.card = describe_model(self, name=name, stored_dtype=stored)

    @classmethod
    def load(
        cls, path: str | Path, *, head: str = "auto", trust_pickle: bool = False, name: str | None = None
    ) -> Self:
        """Load a Hugging Face folder or an MLflow model folder with the transformers flavour, offline.

        safetensors only unless `trust_pickle`; code that comes with a model is never run. SubjectError says why a
        folder cannot be audited.
        """
        from veedor.subjects.card import read_model_card
        from veedor.subjects.loading import load_folder

        loaded = load_folder(Path(path), name=name or str(path), trust_pickle=trust_pickle)
        subject = cls(loaded.model, loaded.tokenizer, head=head, name=name or str(path))
        if loaded.stored_dtype != subject.card.stored_dtype:
            from veedor.subjects.card import describe_model

            subject.card = describe_model(subject, name=subject.card.name, stored_dtype=loaded.stored_dtype)
        declared = read_model_card(loaded.cards)
        subject.card = subject.card.model_copy(update=declared)
        return subject

    # What it says

    def target_index(self, label: str) -> int:
        """Index of a label; UsageError names the nearest one."""
        if label not in self.labels:
            raise UsageError(f"{unknown('label', label, self.labels)} (labels of {self.card.name})")
        return self.labels.index(label)

    def logits(self, batch: Batch) -> "torch.Tensor":
        """The classifier's outputs, (b, outputs), as for each text alone and without padding."""
        if self.reading == "eos" or hasattr(self.model, "score"):
            return self.logits_from_embeddings(self.embed(batch), batch)
        return self._forward(batch, input_ids=batch.ids)

    def logits_from_embeddings(self, embeddings: "torch.Tensor", batch: Batch) -> "torch.Tensor":
        """The outputs where these word embeddings (b, n, d) stand in the place of the batch's own."""
        if self.reading == "eos":
            return self._from_eos(embeddings, batch)
        if hasattr(self.model, "score"):
            return self._from_last(embeddings, batch)
        return self._forward(batch, inputs_embeds=embeddings)

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
        config = text_config(self.model)
        marker = config.eos_token_id if self.reading == "eos" else getattr(config, "pad_token_id", None)
        return heads.read_row(batch.ids, batch.mask, reading=self.reading, marker=marker)

    # What it reads

    @property
    def mask_id(self) -> int | None:
        """The mask token, if there is one."""
        return known_id(self.tokenizer.mask_token_id, self.tokenizer)

    @property
    def pad_id(self) -> int | None:
        """The padding token, if there is one."""
        return known_id(self.tokenizer.pad_token_id, self.tokenizer)

    @property
    def unk_id(self) -> int | None:
        """The unknown token, if there is one."""
        return known_id(self.tokenizer.unk_token_id, self.tokenizer)

    @property
    def device(self) -> "torch.device":
        """Where the model's parameters are."""
        device: torch.device = next(self.model.parameters()).device
        return device

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Token ids of each text, cut to the window, with offsets and words; in input order."""
        return encode_texts(self.tokenizer, texts, window=self.window, lone_id=self._lone_id())

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
        if filler is None:
            return None
        return torch.where(batch.special, batch.ids, torch.full_like(batch.ids, filler))

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

    # How it is run

    def _mean_embedding(self) -> "torch.Tensor":
        """Mean row of the embedding matrix as the embedding layer hands it on, (d,)."""
        import torch

        rows = torch.arange(self.model.get_input_embeddings().num_embeddings, device=self.device)
        return torch.stack([self.embed(part).double().mean(0) * len(part) for part in rows.split(8192)]).sum(0).div(
            len(rows)
        ).to(dtype_as_torch(self.model))

    def _batch(self, rows: Sequence[int], encodings: Sequence[Encoding]) -> Batch:
        import torch

        filler = self.pad_id if self.pad_id is not None else self._lone_id()
        ids = [own.ids or (self._lone_id(),) for own in encodings]
        padded = torch.tensor(pad(ids, filler), device=self.device)
        mask = torch.tensor(pad([[1] * len(own) for own in ids], 0), device=self.device)
        special = pad([[int(flag) for flag in own.special] or [1] for own in encodings], 1)
        return Batch(
            rows=tuple(rows),
            ids=padded,
            mask=mask,
            position_ids=None if self._offset is None else positions(padded, self._offset),
            special=torch.tensor(special, dtype=torch.bool, device=self.device),
        )

    def _lone_id(self) -> int:
        """The special token that stands for a text without tokens, and fills where there is no padding token."""
        tokenizer = self.tokenizer
        found = (tokenizer.eos_token_id, tokenizer.bos_token_id, self.pad_id, self.unk_id)
        return next((int(index) for index in found if index is not None), 0)

    def _forward(self, batch: Batch, **given: "torch.Tensor") -> "torch.Tensor":
        if batch.position_ids is not None:
            given["position_ids"] = batch.position_ids
        logits: torch.Tensor = self.model(attention_mask=batch.mask, **given).logits
        return logits

    def _from_last(self, embeddings: "torch.Tensor", batch: Batch) -> "torch.Tensor":
        """A decoder's head applied at each text's own last token: the model itself would read padding."""
        import torch

        found = self.model.base_model(inputs_embeds=embeddings, attention_mask=batch.mask, use_cache=False)
        rows = torch.arange(len(batch.ids), device=self.device)
        logits: torch.Tensor = self.model.score(found[0][rows, self.read_row(batch)])
        return logits

    def _from_eos(self, embeddings: "torch.Tensor", batch: Batch) -> "torch.Tensor":
        """An encoder-decoder's head applied at each text's own last eos; the decoder reads the text moved by one."""
        import torch

        start = torch.full_like(batch.ids[:, :1], text_config(self.model).decoder_start_token_id)
        found = self.model.base_model(
            inputs_embeds=embeddings,
            attention_mask=batch.mask,
            decoder_inputs_embeds=torch.cat((self.embed(start), embeddings[:, :-1]), dim=1),
            use_cache=False,
        )
        rows = torch.arange(len(batch.ids), device=self.device)
        logits: torch.Tensor = self.model.classification_head(found[0][rows, self.read_row(batch)])
        return logits
