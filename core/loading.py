"""Loading a checkpoint's files into a model behind the door, and the self-check that refuses a wrong one."""

import inspect
from typing import Any, Final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel
from transformers.utils import logging as transformers_logging

from core.attention import DOOR, Tile, observe
from core.checkpoints import DTYPES, Checkpoint, CheckpointFiles
from core.errors import CheckpointError

ROW_SUM_TOLERANCE: Final = 1e-4
OUTPUT_TOLERANCE: Final = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 3e-2, torch.bfloat16: 1e-1}
"""Largest difference with and without the door, relative to the output's largest value."""
PROBE_TOKENS: Final = (7, 12)
"""Lengths of the two texts of the self-check: different, so that padding is checked too."""


def load(files: CheckpointFiles, device: str, dtype: str) -> Checkpoint:
    """See core.checkpoints.load_checkpoint."""
    if dtype not in DTYPES or (dtype == "float64" and device == "mps"):
        raise CheckpointError(f"dtype {dtype!r} is not available on {device}. Choose float32.")
    # What a reader must know is raised below; transformers' own reports would only fill the terminal.
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    tokenizer = _load_tokenizer(files)
    model = _load_model(files, getattr(torch, dtype)).to(device).eval()
    _check_vocabulary(files, model, tokenizer)
    probe = self_check(model, files.name, tokenizer.vocab_size)
    return Checkpoint(
        files=files,
        model=model,
        tokenizer=tokenizer,
        n_layers=probe.n_layers,
        n_heads=probe.n_heads,
        causal=probe.causal,
        takes_type_ids=_takes_type_ids(model),
        max_tokens=_max_tokens(model, tokenizer),
        device=device,
        dtype=dtype,
        statistics_dtype=torch.float64 if dtype == "float64" else torch.float32,
    )


def _load_tokenizer(files: CheckpointFiles) -> Any:
    try:
        tokenizer = AutoTokenizer.from_pretrained(files.folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # what a broken file makes the library raise is open-ended
        raise CheckpointError(
            f"The tokenizer of {files.name} cannot be loaded ({_first_line(error)}). Save its tokenizer.json beside it."
        ) from error
    if not tokenizer.is_fast:
        raise CheckpointError(
            f"The tokenizer of {files.name} cannot tell which characters a token stands for. Save it as tokenizer.json."
        )
    return tokenizer


def _load_model(files: CheckpointFiles, dtype: torch.dtype) -> PreTrainedModel:
    try:
        config = AutoConfig.from_pretrained(files.folder, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"transformers does not know the architecture {files.model_type!r} of {files.name}, and code from a "
            "checkpoint is never run. Choose another checkpoint, or a newer release of transformers."
        ) from error
    if getattr(config, "is_encoder_decoder", False):
        raise CheckpointError(
            f"{files.name} is an encoder-decoder ({files.model_type}); this release reads checkpoints with one stack. "
            "Choose an encoder such as BERT."
        )
    try:
        model, report = AutoModel.from_pretrained(
            files.folder,
            config=config,
            dtype=dtype,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except Exception as error:  # as above
        raise CheckpointError(
            f"The weights of {files.name} cannot be loaded ({_first_line(error)}). Save the checkpoint again."
        ) from error
    _check_complete(files, report)
    return model


def _check_complete(files: CheckpointFiles, report: dict[str, Any]) -> None:
    """Weights that are not in the file would be random, and its attention meaningless; a pooler comes after it."""
    missing = sorted(name for name in report["missing_keys"] if "pooler" not in name)
    if missing or report["mismatched_keys"]:
        first = (missing or sorted(str(name) for name in report["mismatched_keys"]))[0]
        raise CheckpointError(
            f"{len(missing) + len(report['mismatched_keys'])} weights of {files.name} are missing or of another shape, "
            f"{first} first. Save the whole model with save_pretrained."
        )


def _check_vocabulary(files: CheckpointFiles, model: PreTrainedModel, tokenizer: Any) -> None:
    """A tokenizer that gives ids the model has no embedding for belongs to another model."""
    n_known = getattr(model.config, "vocab_size", len(tokenizer))
    if len(tokenizer) > n_known:
        raise CheckpointError(
            f"The tokenizer of {files.name} has {len(tokenizer):,} tokens and its model knows {n_known:,}. "
            "Save the tokenizer that belongs to the model beside it."
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200] or type(error).__name__


class ProbeObserver:
    """Reads a model's shape off the door, and checks what comes through."""

    indicators = None
    wants_entropy = False

    def __init__(self, n_tokens: tuple[int, ...]) -> None:
        self._n_tokens = n_tokens
        self.heads: dict[int, int] = {}
        self.row_error = 0.0
        self.causal = True

    @property
    def n_layers(self) -> int:
        """Layers seen."""
        return len(self.heads)

    @property
    def n_heads(self) -> int:
        """Heads of the first layer."""
        return self.heads[0]

    def observe(self, tile: Tile) -> None:
        """Note the heads, the worst row sum, and whether any token sees a later one."""
        self.heads[tile.layer] = tile.probabilities.shape[1]
        for row, n_tokens in enumerate(self._n_tokens[tile.texts]):
            real = tile.probabilities[row, :, : max(0, n_tokens - tile.queries.start), :n_tokens]
            self.row_error = max(self.row_error, float((real.sum(-1) - 1).abs().max()))
            self.causal &= not bool(real.triu(tile.queries.start + 1).any())


def self_check(model: PreTrainedModel, name: str, vocabulary: int) -> ProbeObserver:
    """Set a model to the door and prove it: rows sum to 1, and the output equals the one without the door.

    Returns: the observer, with the numbers of layers and heads and whether the model is causal.
    Raises: CheckpointError with the numbers.
    """
    ids, mask = _probe_batch(vocabulary, model.device)
    expected = _plain_output(model, name, ids, mask)
    _set_door(model, name)
    probe = ProbeObserver(PROBE_TOKENS)
    output = observe(model, ids, mask, None, [probe])[0]
    if not probe.heads:
        raise CheckpointError(
            f"{name} ({type(model).__name__}) computes attention in its own way, where it cannot be observed. "
            "Choose a checkpoint of another family, such as BERT, RoBERTa, DistilBERT, ELECTRA or ALBERT."
        )
    if len(set(probe.heads.values())) > 1:
        raise CheckpointError(
            f"The layers of {name} differ in heads ({sorted(set(probe.heads.values()))}); a grid needs equal ones."
        )
    difference = _largest_difference(expected, output)
    if not (probe.row_error <= ROW_SUM_TOLERANCE and difference <= OUTPUT_TOLERANCE[expected.dtype]):
        raise CheckpointError(
            f"{name} failed its self-check: attention rows are off 1 by {probe.row_error:.1e} (allowed "
            f"{ROW_SUM_TOLERANCE:.0e}) and the output changes by {difference:.1e} when observed (allowed "
            f"{OUTPUT_TOLERANCE[expected.dtype]:.0e}). Its scores would be wrong, so it is not used."
        )
    return probe


def _plain_output(
    model: PreTrainedModel, name: str, ids: Int[Tensor, "text token"], mask: Int[Tensor, "text token"]
) -> Float[Tensor, "text token channel"]:
    try:
        with torch.inference_mode():
            return model(input_ids=ids, attention_mask=mask)[0]
    except Exception as error:  # models for pictures, sound or tables fail in their own ways
        raise CheckpointError(
            f"{name} ({type(model).__name__}) cannot read a text of {max(PROBE_TOKENS)} tokens ({_first_line(error)}). "
            "Choose a checkpoint of a text model, such as BERT."
        ) from error


def _set_door(model: PreTrainedModel, name: str) -> None:
    try:
        model.set_attn_implementation(DOOR)
    except ValueError as error:
        raise CheckpointError(
            f"{name} ({type(model).__name__}) does not let its attention be observed ({_first_line(error)}). "
            "Choose a checkpoint of another family, such as BERT."
        ) from error


def _probe_batch(vocabulary: int, device: torch.device) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(min(5, vocabulary - 1), vocabulary, (len(PROBE_TOKENS), max(PROBE_TOKENS)), generator=generator)
    mask = torch.arange(max(PROBE_TOKENS))[None] < torch.tensor(PROBE_TOKENS)[:, None]
    return ids.to(device), mask.long().to(device)


def _largest_difference(
    expected: Float[Tensor, "text token channel"], output: Float[Tensor, "text token channel"]
) -> float:
    """Over real tokens, relative to the largest value."""
    real = [(expected[row, :n].double(), output[row, :n].double()) for row, n in enumerate(PROBE_TOKENS)]
    largest = max(float(before.abs().max()) for before, _ in real)
    return max(float((before - after).abs().max()) for before, after in real) / max(largest, 1e-12)


def _takes_type_ids(model: PreTrainedModel) -> bool:
    """Whether segment numbers mean something to the model: it accepts them and has more than one."""
    accepts = "token_type_ids" in inspect.signature(model.forward).parameters
    return accepts and getattr(model.config, "type_vocab_size", 0) > 1


def _max_tokens(model: PreTrainedModel, tokenizer: Any) -> int:
    """The smaller of what tokenizer and position embeddings allow.

    A table of positions with a padding entry (RoBERTa) starts counting after it.
    """
    limits = [tokenizer.model_max_length]
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.endswith("position_embeddings"):
            start = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - start)
    if len(limits) == 1:
        limits.append(getattr(model.config, "max_position_embeddings", limits[0]))
    return int(min(limits))
