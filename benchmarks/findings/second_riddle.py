"""Which heads the small decoder needs for the word of the second riddle: each head alone, pairs of those that matter
most alone, and pairs drawn at random. The probabilities are also measured by hooks on plain transformers.

Ends with an error where the pairs are not those that the page takes as answers.
"""

import itertools
import sys
from typing import Final

import numpy as np
import torch

from attention_sieve.core.attention.settings import PassSettings, head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.checkpoints.sample_decoder import make_sample_decoder
from attention_sieve.core.importance.fewest_heads import N_ADDED, N_DRAWN, Heads, drawn_at_random
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.passes.outputs import next_tokens, token_leads
from attention_sieve.core.passes.texts import prepare
from attention_sieve.dashboard.views.second_riddle.verdict import PAIRS, RIDDLE, WORD
from benchmarks.shared.markdown import header, row

SETTINGS: Final = PassSettings()


def main() -> None:
    make_sample_decoder()
    checkpoint = load_checkpoint(find_checkpoint(SAMPLE_DECODER), device="cpu")
    text = prepare(checkpoint, RIDDLE, SETTINGS)
    token, layers = next_tokens(checkpoint, text, SETTINGS).ids[0], checkpoint.attentions["self"]
    shape = (layers.n_layers, layers.n_heads)
    alone = [((layer, head),) for layer in range(shape[0]) for head in range(shape[1])]
    of_alone = dict(zip(alone, token_leads(checkpoint, text, "self", alone, token), strict=True))
    most = sorted(head for (head,) in sorted(alone, key=of_alone.__getitem__)[:N_ADDED])
    pairs, drawn = list(itertools.combinations(most, 2)), drawn_at_random(2, shape)
    of_pairs = dict(zip(pairs, token_leads(checkpoint, text, "self", pairs, token), strict=True))
    of_drawn = token_leads(checkpoint, text, "self", drawn, token)
    print(f"Sets of heads without which {SAMPLE_DECODER} does not say *{WORD}* after “{RIDDLE.segments[0]}”:")
    header("sets", "tried", "of these, without which it says another word")
    row("each head alone", len(alone), sum(lead < 0 for lead in of_alone.values()))
    row(f"two of the {N_ADDED} that matter most alone", len(pairs), sum(lead < 0 for lead in of_pairs.values()))
    row("two drawn at random", N_DRAWN, sum(lead < 0 for lead in of_drawn))
    print(f"\nProbability of *{WORD}*, by this program and by hooks on plain transformers:")
    header("without", "this program", "hooks", "difference")
    changing = [pair for pair in pairs if of_pairs[pair] < 0]
    for heads in ((), *changing):
        found = next_tokens(checkpoint, text, PassSettings(off=heads))
        share = float(np.exp(found.log_probabilities[1][found.ids.index(token)]))
        hooks = share_by_hooks(checkpoint, heads, token)
        names = " and ".join(head_name(*head) for head in heads) or "no head"
        row(names, f"{share:.1%}", f"{hooks:.1%}", f"{abs(share - hooks):.0e}")
    if sorted(changing) != sorted(PAIRS):
        sys.exit(f"The page takes other pairs as answers: {PAIRS}.")


def share_by_hooks(checkpoint: Checkpoint, heads: Heads, token: int) -> float:
    """Probability of a token after the text, by the library's own SDPA, with slices of the input of the output
    projection set to 0."""
    model = type(checkpoint.full_model).from_pretrained(checkpoint.files.folder, attn_implementation="sdpa").eval()
    size = model.config.head_dim
    for layer, head in heads:

        def zero(_: object, arguments: tuple[torch.Tensor, ...], head: int = head) -> tuple[torch.Tensor]:
            values = arguments[0].clone()
            values[..., head * size : (head + 1) * size] = 0
            return (values,)

        model.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(zero)
    inputs = model_inputs(checkpoint, [prepare(checkpoint, RIDDLE, SETTINGS)])
    with torch.inference_mode():
        return float(model(**inputs).logits[0, -1].softmax(-1)[token])


if __name__ == "__main__":
    main()
