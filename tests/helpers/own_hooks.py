"""What a causal language model does, by hooks and passes of the test's own, which share no code with `core`."""

import copy

import torch


def own_maps(model, ids):
    """The attention of each layer that has one, from transformers' eager path: (layer, [head query key]), in the order
    in which layers are run.

    A layer is a place in the model's longest list of modules, or one of several in such a place.
    """
    lists = [part for part in model.modules() if isinstance(part, torch.nn.ModuleList)]
    longest = max(lists, key=len, default=())
    running, seen = [None], []

    def take(module, arguments, output):
        for part in output if isinstance(output, tuple) else ():
            is_map = isinstance(part, torch.Tensor) and part.dim() == 4 and part.shape[2] == len(ids)
            if is_map and part.shape[3] >= len(ids) and not any(part is other for _, other in seen):
                seen.append((running[0], part))

    hooks = [module.register_forward_hook(take) for module in model.modules()]
    for layer, module in enumerate(longest):
        hooks.append(module.register_forward_pre_hook(lambda *_, layer=layer: running.__setitem__(0, layer)))
    try:
        with torch.inference_mode():
            model(input_ids=torch.tensor([ids]), use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    n_each = len(seen) // max(1, len({layer for layer, _ in seen}))
    order = range(len(seen)) if n_each > 1 and n_each * len(longest) == len(seen) else [layer for layer, _ in seen]
    return [(layer, attention[0, ..., -len(ids) :].float()) for layer, (_, attention) in zip(order, seen)]


def furthest(attention):
    """How many tokens back the furthest key is that any query of a map attends to."""
    query, key = (attention > 0).any(0).nonzero(as_tuple=True)
    return int((query - key).max())


def log_probabilities(model, ids):
    """Of the next token, after a pass over the whole text that keeps nothing."""
    with torch.inference_mode():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].double().log_softmax(-1)


def eager_model(config, seed=0):
    """A random model of a family, and a copy on which the test's own hooks are hung."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    return model, copy.deepcopy(model)


def without(folder, auto_class, inputs, heads):
    """Logits of a checkpoint for one text by transformers' SDPA, with some heads' slices of the output projection's
    input set to 0."""
    model = auto_class.from_pretrained(folder, attn_implementation="sdpa").eval()
    names = ("o_proj", "c_proj", "dense")
    blocks = max((part for part in model.modules() if isinstance(part, torch.nn.ModuleList)), key=len)
    for layer, head in heads:
        parts = dict(blocks[layer].named_modules())
        attention = next(parts[name] for name in ("attn", "self_attn", "attention") if name in parts)
        projection = next(part for name, part in attention.named_modules() if name.rpartition(".")[2] in names)

        def zero(_, arguments, head=head):
            values = arguments[0].clone()
            size = values.shape[-1] // model.config.num_attention_heads
            values[..., head * size : (head + 1) * size] = 0
            return (values,)

        projection.register_forward_pre_hook(zero)
    with torch.inference_mode():
        return model(**inputs).logits[0].double()
