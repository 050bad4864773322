"""A decoder with heads that are built by hand: one finds what followed an earlier copy, one looks at a distance."""

BEFORE, RULER, INDUCTION = (0, 0), (1, 1), (1, 0)
BLOCK = 25


def save_planted_copies(folder, noise=0.0, seed=0):
    """Save a GPT-2 of 2 layers and 2 heads, all of whose weights are set.

    The residual stream has a channel for each token, for each position, and for each token again, into which BEFORE,
    that looks at the token before, writes what it sees. INDUCTION asks there for its own token, and so finds the tokens
    after its copies. RULER looks BLOCK - 1 tokens back, whatever stands there. L0 H1 looks everywhere alike.
    Normal noise is added to all weights but those of the layer norms.
    """
    import torch
    from small_checkpoints import TOKENIZERS
    from transformers import GPT2Config, GPT2Model

    tokenizer, n_positions = TOKENIZERS["gpt2"](), 8 * BLOCK
    n_tokens = len(tokenizer)
    tokens, places = slice(0, n_tokens), slice(n_tokens, n_tokens + n_positions)
    size = 2 * (-(-(2 * n_tokens + n_positions) // 2))
    before = slice(n_tokens + n_positions, 2 * n_tokens + n_positions)
    shape = {"n_layer": 2, "n_head": 2, "n_embd": size, "n_inner": 4, "n_positions": n_positions}
    made = GPT2Model(GPT2Config(vocab_size=n_tokens, bos_token_id=0, eos_token_id=0, **shape))
    n_own = size // 2
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, weights in made.named_parameters():
            if "ln_" not in name:
                weights.zero_()
        made.wte.weight[:, tokens] = torch.eye(n_tokens)
        made.wpe.weight[:, places] = torch.eye(n_positions)

        def looks(head, queries, keys, strength=4.0):
            """The channels of queries ask for those of keys, one by one."""
            layer, number = head
            attention = made.h[layer].attn.c_attn.weight
            for start, channels in ((0, queries), (size, keys)):
                width = len(channels)
                own = slice(start + number * n_own, start + number * n_own + width)
                attention[channels, own] = strength * torch.eye(width)

        every = torch.arange(size)
        looks(BEFORE, every[places][1:], every[places][:-1])
        looks(RULER, every[places][BLOCK - 1 :], every[places][: 1 - BLOCK])
        looks(INDUCTION, every[tokens], every[before])
        first = made.h[0].attn
        first.c_attn.weight[tokens, 2 * size : 2 * size + n_tokens] = torch.eye(n_tokens)
        first.c_proj.weight[:n_tokens, before] = 0.05 * torch.eye(n_tokens)
        for name, weights in made.named_parameters():
            if "ln_" not in name:
                weights += noise * torch.randn_like(weights)
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
