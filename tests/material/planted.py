"""A checkpoint with one head that looks from one word to another; every other head spreads its attention evenly."""

from small_checkpoints import TOKENIZERS, config


def save_planted(folder, query, key, head, sharpness=40.0):
    """Save a BERT of 2 layers and 3 heads, in which `head` attends from the word `query` to the word `key` alone.

    The two words have a dimension each, which no layer writes into; of all queries only the planted head's see the
    first word, and of all keys only its keys see the second.
    """
    import torch
    from transformers import AutoModel

    torch.manual_seed(0)
    tokenizer = TOKENIZERS["bert"]()
    made = AutoModel.from_config(config("bert", len(tokenizer)))
    layer, number = head
    with torch.no_grad():
        for name, weights in made.named_parameters():
            if "LayerNorm" not in name:
                weights.zero_()
        embeddings = made.embeddings.word_embeddings.weight
        # Each adds up to 0, so that the layer norms leave the other dimensions at 0.
        embeddings[:, 0], embeddings[:, 1] = 1.0, -1.0
        seen = {query: 2, key: 3}
        for word, place in seen.items():
            embeddings[tokenizer.convert_tokens_to_ids(word), [1, place]] = torch.tensor([0.0, -1.0])
        for block in made.encoder.layer:
            # Whatever the heads put out; the self-check wants to see that the model computes with it.
            block.attention.self.value.weight.normal_(std=0.1)
            written = block.attention.output.dense.weight
            written[4].normal_(std=0.1)
            written[5] = -written[4]
        attention = made.encoder.layer[layer].attention.self
        first = number * attention.attention_head_size
        for projection, word in ((attention.query, query), (attention.key, key)):
            projection.weight[first, seen[word]] = sharpness
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
