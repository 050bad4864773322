"""Which heads speak for a token: what each adds to its logit directly, past everything between.

Source: nostalgebraist 2020 (logit lens); Wang et al. 2022, section 3.1 (direct effects on logits).
"""

import numpy as np
import torch
from jaxtyping import Float

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.spread import weight_in
from attention_sieve.core.importance.passes.direct_path import direct_path
from attention_sieve.core.importance.passes.projections import remaining_heads, weight_of
from attention_sieve.core.passes.texts import PassText


@torch.no_grad()
def logit_attribution(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings, position: int, token: int
) -> Float[np.ndarray, "layer head"]:
    """What each head adds directly to the logit of a next token, relative to the mean of all tokens.

    Args:
        checkpoint: loaded, a causal language model.
        text: prepared for the kind of attention in the settings.
        settings: which heads are off; these add 0.
        position: index of the token after which the token follows.
        token: its id.

    Returns: in logits; NaN for removed heads and layers without attention.

    Raises: AnalysisError as `direct_path`.
    """
    attention = checkpoint.attentions[text.kind]
    path = direct_path(checkpoint, text, settings, position)
    unembedding = weight_in(path.model.get_output_embeddings())
    direction = (unembedding[token] - unembedding.mean(0)).double()
    added = np.full((attention.n_layers, attention.n_heads), np.nan)
    for layer, module in path.projections.items():
        (to_output,) = path.before_addition(layer, direction[None])
        by_channel = path.inputs[layer] * (to_output @ weight_of(module).double())
        heads = remaining_heads(layer, attention)
        added[layer, heads] = by_channel.view(len(heads), -1).sum(-1).cpu().numpy()
    return added
