"""Loads a checkpoint's files into a model that uses the registered attention function, on one device or spread over
several."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any, Final

import psutil
import torch
import transformers
from torch import Tensor, nn
from transformers import (
    CONFIG_MAPPING,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedModel,
)
from transformers.utils import logging as transformers_logging

from attention_sieve.core.checkpoints.adapters import NONE_BESIDE, merge_adapter, sharing_weights
from attention_sieve.core.checkpoints.checkpoint import (
    DTYPES,
    OUTPUT_HEADS,
    REMOVED_HEADS,
    Checkpoint,
    CheckpointFiles,
    OutputHead,
)
from attention_sieve.core.checkpoints.checks import loaded
from attention_sieve.core.checkpoints.checks.adapters import adapter_weights, n_classes
from attention_sieve.core.checkpoints.checks.bounds import check_size, check_tokenizer_files
from attention_sieve.core.checkpoints.gguf import MISMATCH
from attention_sieve.core.checkpoints.weights import class_without_heads, remove_heads
from attention_sieve.core.errors import CheckpointError, first_line, panics_caught

SHARE_OF_GPU: Final = 0.8
"""Share of a GPU's free memory for weights; the rest is for attention."""


def placed(model: PreTrainedModel, device: str) -> PreTrainedModel:
    """A model that was loaded on the CPU, on a device; over all GPUs if there are several and one is too small.

    What no GPU has room for stays in the machine's memory, from which each layer is brought to a GPU as it runs.
    """
    if device != "cuda" or (n_gpus := torch.cuda.device_count()) < 2:
        return model.to(device)
    free: dict[int | str, int] = {gpu: int(SHARE_OF_GPU * torch.cuda.mem_get_info(gpu)[0]) for gpu in range(n_gpus)}
    if model.get_memory_footprint() <= free[torch.cuda.current_device()]:
        return model.to(device)
    from accelerate import dispatch_model

    return dispatch_model(model, device_map(model, free | {"cpu": psutil.virtual_memory().available}))


def device_map(model: PreTrainedModel, free: Mapping[int | str, int]) -> Mapping[str, int | str]:
    """The device of each part of a model, so that no layer is divided. The bytes that are free for weights on each
    device are filled in this order."""
    from accelerate import infer_auto_device_map

    devices: Mapping[str, int | str] = infer_auto_device_map(
        model, max_memory=dict(free), no_split_module_classes=list(model._no_split_modules or ())
    )
    return devices


def input_device(model: nn.Module) -> torch.device:
    """Where a model takes its inputs: on the device of its first weights, or where these are brought once they are
    used."""
    device = next(model.parameters()).device
    return next(_execution_devices(model), device) if device.type == "meta" else device


def _execution_devices(model: nn.Module) -> Iterator[torch.device]:
    """Where the hooks of accelerate run modules, in their order."""
    for module in model.modules():
        hook: Any = getattr(module, "_hf_hook", None)
        for part in getattr(hook, "hooks", (hook,)):
            if (device := getattr(part, "execution_device", None)) is not None:
                yield torch.device(device)


def weight_in(module: Any) -> Tensor:
    """The weights of a layer; a copy of those that are elsewhere."""
    weight: Tensor = module.weight
    if not weight.is_meta:
        return weight
    from accelerate.utils import align_module_device

    with align_module_device(module):
        weight = module.weight
        return weight.detach().clone()


AUTO_CLASSES: Final = {
    "ForMaskedLM": "AutoModelForMaskedLM",
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
    "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
    "MTModel": "AutoModelForSeq2SeqLM",
    "ForSequenceClassification": "AutoModelForSequenceClassification",
}
"""Suffix of OUTPUT_HEADS -> auto class that loads the model with its head."""
ONE_AT_A_TIME: Final = Lock()
"""transformers patches its own classes while it loads weights; two threads at once can leave them patched, after which
no model ties its embeddings any more."""
NO_LIMIT: Final = 1 << 20
"""Maximum length if neither tokenizer nor model specifies one: a million tokens, more than memory allows."""


@panics_caught()
def load(files: CheckpointFiles, device: str, dtype: str, base: Checkpoint | None = None) -> Checkpoint:
    """See attention_sieve.core.checkpoints.find.load_checkpoint."""
    if dtype not in DTYPES or (dtype == "float64" and device == "mps"):
        raise CheckpointError(f"dtype {dtype!r} is not available on {device}. Choose float32.")
    # Relevant problems are raised below; transformers' own reports would only fill the terminal.
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    config = _load_config(files)
    tokenizer = load_tokenizer(files)
    loaded.stated_length(files.name, tokenizer)  # a wrong one is refused before the weights are read
    if base is not None and _head_and_classes(config) == _head_and_classes(base.full_model.config):
        full_model = sharing_weights(base.full_model)
    else:
        full_model = placed(_load_model(files, config, getattr(torch, dtype)).eval(), device)
        loaded.own_memory(full_model)
    if files.base is not None and files.seed is None:
        merge_adapter(files.name, files.folder, full_model)
    loaded.check_weights(files.name, full_model)
    return checkpoint_of(files, full_model, tokenizer, device=device, dtype=dtype)


def checkpoint_of(
    files: CheckpointFiles, full_model: PreTrainedModel, tokenizer: Any, *, device: str, dtype: str
) -> Checkpoint:
    """A model in evaluation mode as a checkpoint, which observes it through the registered attention function.

    Args:
        full_model: with its head.
        tokenizer: a fast one; the names of its special tokens become plain text.

    Raises: CheckpointError for a tokenizer that does not belong to the model, and a failed self-check.
    """
    stated = loaded.stated_length(files.name, tokenizer)
    loaded.keep_names_as_text(tokenizer)
    n_embeddings = loaded.check_vocabulary(files.name, full_model, tokenizer)
    _compute_in_float64(full_model)
    model = _without_head(full_model)
    n_ids, is_double = min(tokenizer.vocab_size, n_embeddings), len(files.kinds) > 1
    first = loaded.first_id(tokenizer)
    layers_by_kind = loaded.self_check(model, files.name, n_ids, first, is_double, torch.device(device))
    attentions = {
        kind: replace(layers, removed=(*dict(files.removed).get(kind, ()), *layers.removed))
        for kind, layers in layers_by_kind.items()
    }
    head, padding_id = _head(full_model.config, type(full_model).__name__)[1], tokenizer.pad_token_id
    if head == "next token" and not (is_double or attentions["self"].causal):
        head = None  # tokens see the one that they would predict, as in XLNet
    accepted = inspect.signature(model.forward).parameters
    return Checkpoint(
        files=files,
        model=model,
        full_model=full_model,
        # None for a masked language model whose tokenizer has no mask token.
        head=None if head == "masked token" and tokenizer.mask_token_id is None else head,
        tokenizer=tokenizer,
        attentions=attentions,
        # Segment ids are of use where there is more than one.
        takes_type_ids="token_type_ids" in accepted and getattr(model.config, "type_vocab_size", 0) > 1,
        padding_id=padding_id if padding_id is not None and padding_id < n_embeddings else 0,
        start_id=_start_id(files, model) if len(files.kinds) > 1 else 0,
        max_tokens=_max_tokens(model, stated),
        device=device,
        dtype=dtype,
        statistics_dtype=torch.float64 if dtype == "float64" else torch.float32,
    )


@panics_caught()
def load_without_weights(files: CheckpointFiles) -> Any:
    """Check everything that can be checked without reading the weights: configuration, tokenizer, and size.

    Returns: the tokenizer.
    Raises: CheckpointError as `load` does.
    """
    config = _load_config(files)
    _check_kind(files, config)
    tokenizer = load_tokenizer(files)
    loaded.stated_length(files.name, tokenizer)
    loaded.keep_names_as_text(tokenizer)
    check_size(files.name, files.whole.folder, getattr(transformers, _head(config)[0]), config, torch.bfloat16)
    return tokenizer


def load_tokenizer(files: CheckpointFiles) -> Any:
    """The tokenizer of a checkpoint: a fast one of transformers.

    Raises: CheckpointError for one that cannot be loaded, or reports no characters.
    """
    check_tokenizer_files(files.name, files.tokenizer_folder)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            files.tokenizer_folder, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # what a broken file makes the library raise is open-ended
        raise CheckpointError(
            f"The tokenizer of {files.name} cannot be loaded ({first_line(error)}). Save its tokenizer.json beside it."
        ) from error
    if not tokenizer.is_fast:
        raise CheckpointError(
            f"The tokenizer of {files.name} does not report which characters a token stands for. Save it as "
            "tokenizer.json."
        )
    return tokenizer


def _load_config(files: CheckpointFiles) -> Any:
    if files.model_type not in CONFIG_MAPPING:
        raise CheckpointError(
            f"transformers does not know the architecture {files.model_type!r} of {files.name}, and code from a "
            "checkpoint is never run. Choose another checkpoint, or a newer release of transformers."
        )
    try:
        config = AutoConfig.from_pretrained(files.whole.folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # what a broken file makes the library raise is open-ended
        raise CheckpointError(
            f"config.json of {files.name} cannot be used ({first_line(error)}). Save the checkpoint again."
        ) from error
    # Chunking saves memory in training only, and fails for texts whose length is not a multiple of the chunk size.
    config.chunk_size_feed_forward = 0
    if files.base is not None and (n_rows := n_classes(files.folder)) is not None:
        if type(config) not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
            raise CheckpointError(
                f"{files.name} brings a classification head, and transformers has none for {files.model_type!r}, the "
                "architecture of its base. Save the adapter without it."
            )
        config.architectures = [MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING[type(config)].__name__]
        config.num_labels = n_rows
    return config


def _load_model(files: CheckpointFiles, config: Any, dtype: torch.dtype) -> PreTrainedModel:
    _check_kind(files, config)
    check_size(files.name, files.whole.folder, getattr(transformers, _head(config)[0]), config, dtype)
    create = _read_weights if files.seed is None else _draw_weights
    model = create(files, config, dtype, None)
    if not type(model)._can_set_attn_implementation() and not loaded.is_eager(model):
        # A model's own fused kernel calls no softmax, and Falcon chooses its kernel when it is built.
        model = create(files, config, dtype, "eager")
    model.config.use_cache = False
    # XLNet's parameters are float32 whatever number format is requested.
    return model if model.dtype == dtype else model.to(dtype)


def _compute_in_float64(model: PreTrainedModel) -> None:
    """Let a float64 model compute its experts one by one, since PyTorch has no grouped product in this format."""
    if model.dtype == torch.float64 and model._can_set_experts_implementation():
        model.set_experts_implementation("eager")


def _check_kind(files: CheckpointFiles, config: Any) -> None:
    """Raise for image and audio models, and for a latent attention with fewer keys than queries. transformers checks
    neither, and fails later in various ways.
    """
    auto_class, architecture = _head(config)[0], next(iter(config.architectures or ()), files.model_type)
    if type(config) not in getattr(transformers, auto_class)._model_mapping:
        raise CheckpointError(
            f"{files.name} is a {architecture}, and transformers has no {auto_class} of this kind: image and audio "
            "models cannot be used here. Choose a checkpoint of a text model, such as BERT."
        )
    n_heads, n_kv_heads = (getattr(config, f"num_{name}_heads", None) for name in ("attention", "key_value"))
    if getattr(config, "kv_lora_rank", None) and n_kv_heads not in (None, n_heads):
        raise CheckpointError(
            f"config.json of {files.name} names {n_kv_heads} heads of keys and values and {n_heads} of queries, and "
            f"the latent attention of {architecture} has as many of each. Correct num_key_value_heads in config.json."
        )


def _without_head(full_model: PreTrainedModel) -> PreTrainedModel:
    """The model whose output is the last hidden states, sharing its parts with the one with a head.

    T5 and similar models have no separate model without the head; one is built around the same parts. Llama 4 has one
    that its `base_model` does not find.
    """
    body = getattr(full_model, "model", None)
    if full_model.base_model is full_model and isinstance(body, PreTrainedModel):
        return body
    if full_model.base_model is not full_model or full_model.get_output_embeddings() is None:
        return full_model.base_model
    with torch.device("meta"):
        body = AutoModel.from_config(full_model.config)
    for name, _ in list(body.named_children()):
        setattr(body, name, getattr(full_model, name))
    body.config = full_model.config
    return body.eval()


def _read_weights(files: CheckpointFiles, config: Any, dtype: torch.dtype, attention: str | None) -> PreTrainedModel:
    model, report = _from_files(
        files, config, getattr(transformers, _head(config)[0]), dtype=dtype, attn_implementation=attention
    )
    _check_complete(files, report)
    loaded.check_layers(files.name, model, report["unexpected_keys"])
    return model


def _from_files(files: CheckpointFiles, config: Any, auto_class: Any, **options: Any) -> tuple[PreTrainedModel, Any]:
    """A model with the weights in the files, and transformers' report about them."""
    model_class = class_without_heads(files.name, auto_class, config, files.removed)
    try:
        with ONE_AT_A_TIME:
            return model_class.from_pretrained(
                files.whole.folder,
                config=config,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
                adapter_kwargs=NONE_BESIDE,
                **options,
            )
    except Exception as error:  # what a broken file makes the library raise is open-ended
        hint = f" They may not be those that {REMOVED_HEADS} describes." if files.removed else ""
        # transformers lists weights of another shape in a table, and says only how to ignore them.
        reason = "their shapes do not fit the model" if MISMATCH in str(error) else first_line(error)
        raise CheckpointError(
            f"The weights of {files.name} cannot be loaded ({reason}).{hint} Save the checkpoint again."
        ) from error


def load_every_weight(files: CheckpointFiles) -> tuple[PreTrainedModel, set[str]]:
    """The model that a checkpoint was saved from, in the number format of its files, to save it again; of an adapter
    in float32.

    Unlike a loaded checkpoint, it has heads for tasks that this program does not use.

    Returns: the model, and the names of weights that the files lack, which are random.
    Raises: CheckpointError.
    """
    config = _load_config(files)
    architecture = getattr(transformers, next(iter(config.architectures or ()), ""), None)
    dtype = "auto" if files.base is None else torch.float32
    is_model = isinstance(architecture, type) and issubclass(architecture, PreTrainedModel)
    model, report = _from_files(files, config, architecture if is_model else transformers.AutoModel, dtype=dtype)
    loaded.own_memory(model)
    if files.base is None:
        return model, set(report["missing_keys"])
    merge_adapter(files.name, files.folder, model)
    return model, set(report["missing_keys"]) - adapter_weights(files.folder)


def _draw_weights(files: CheckpointFiles, config: Any, dtype: torch.dtype, attention: str | None) -> PreTrainedModel:
    if files.seed is None:
        raise RuntimeError("Weights are drawn with a seed.")
    with ONE_AT_A_TIME, torch.random.fork_rng(devices=[]):
        torch.manual_seed(files.seed)
        model = getattr(transformers, _head(config)[0]).from_config(
            config, dtype=dtype, attn_implementation=attention, trust_remote_code=False
        )
    remove_heads(files.name, model, files.removed)
    return model


def _head(config: Any, architecture: str | None = None) -> tuple[str, OutputHead | None]:
    """Auto class that loads a checkpoint, and what its head predicts; by default of the architecture that was saved."""
    architecture = architecture or next(iter(config.architectures or ()), "")
    end = next((end for end in OUTPUT_HEADS if architecture.endswith(end)), None)
    return ("AutoModel", None) if end is None else (AUTO_CLASSES[end], OUTPUT_HEADS[end])


def _head_and_classes(config: Any) -> tuple[Any, int]:
    return _head(config), config.num_labels


def _check_complete(files: CheckpointFiles, report: dict[str, Any]) -> None:
    """Raise if weights are missing, which would be random; a missing pooler is allowed, because it follows
    attention."""
    by_adapter = set() if files.base is None else adapter_weights(files.folder)
    missing = sorted(name for name in report["missing_keys"] if "pooler" not in name and name not in by_adapter)
    if missing or report["mismatched_keys"]:
        first_name = (missing or sorted(str(name) for name in report["mismatched_keys"]))[0]
        raise CheckpointError(
            f"{len(missing) + len(report['mismatched_keys'])} weights of {files.name} are missing or have another "
            f"shape, {first_name} first. Save the whole model with save_pretrained."
        )


def _max_tokens(model: PreTrainedModel, stated: int | None) -> int:
    """Maximum length: the smaller limit of tokenizer and position embeddings.

    Position embeddings with a padding entry (RoBERTa) start after that entry.
    """
    limits = [] if stated is None else [stated]
    tables = []
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.endswith("position_embeddings"):
            start = 0 if module.padding_idx is None else module.padding_idx + 1
            tables.append(module.num_embeddings - start)
    configured = getattr(model.config, "max_position_embeddings", None)
    limits += tables or ([] if configured is None else [configured])
    # Longer texts BigBird reads with sparse attention, in which nothing can be observed.
    if getattr(model.config, "attention_type", "") == "block_sparse":
        limits.append((5 + 2 * model.config.num_random_blocks) * model.config.block_size)
    # XLNet names -1 where it has no limit.
    return int(min((limit for limit in limits if limit > 0), default=NO_LIMIT))


def _start_id(files: CheckpointFiles, model: PreTrainedModel) -> int:
    candidates = (
        getattr(model.config, name, None) for name in ("decoder_start_token_id", "bos_token_id", "pad_token_id")
    )
    start = next((token_id for token_id in candidates if token_id is not None), None)
    if start is None:
        raise CheckpointError(
            f"The configuration of {files.name} names no decoder_start_token_id, so its decoder cannot begin. "
            "Add it to config.json."
        )
    return start
