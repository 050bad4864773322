"""The command `python -m attention_sieve next-token`: which heads speak for the next token, and where they look."""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.commands import (
    TABLES,
    check_output,
    checkpoint_facts,
    facts_of_texts,
    loaded,
    prepared_texts,
    progress_bar,
    read_texts,
    write_table,
)
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.generation.attribution import Attribution
from attention_sieve.core.generation.fetching import fetching, fetching_table
from attention_sieve.core.options import (
    add_checkpoint_options,
    add_output_option,
    add_random_weights_option,
    add_texts_options,
)
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.usage import column_list

HEAD_COLUMNS: Final = {
    "text": "index of the text in the file, from 0",
    "token": "the token that heads speak for",
    "name, layer, head": "the head, layer and head from 0; after all heads what else each layer adds (MLP, with other "
    "mixers and biases), the embedding, and biases after the last layer",
    "adds": "what it adds directly to the logit of the token, relative to the mean of all tokens, with every factor on "
    "the way as it is in this text; all rows sum to the logit, before a soft cap. Missing where the model does more "
    "than to add and to multiply",
    "capped": "adds after the soft cap of the logits (Gemma 2): what the cap takes of each token's logit is a factor; "
    "only of a model that has one",
    "from copies": "what of adds goes if the values of earlier copies of the token are replaced by the mean of the "
    "other tokens' values: what the head copied; heads are ordered by it",
    "looks at, position": "the token before the predicted one attends most to this token, at this index",
    "share": "share of its attention on that token",
    "on copies": "its attention to earlier copies of the token that heads speak for",
}
TOKEN_COLUMNS: Final = {
    "text": "index of the text in the file, from 0",
    "after": "index of the token after which the next one is predicted",
    "token, id": "a likely next token, the one that follows in the text, or the one that is asked about",
    "all on": "its probability with all heads on",
    "probability": "its probability without the heads that are off",
    "follows": "whether it follows in the text",
}


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    columns = column_list("Columns", HEAD_COLUMNS) + column_list("Columns of --tokens", TOKEN_COLUMNS)
    parser = commands.add_parser(
        "next-token",
        help="measure what each head of a decoder adds to the logit of the next token, and where it looks",
        description=f"{next_token.__doc__}{columns}",
    )
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_texts_options(parser)
    parser.add_argument(
        "--after",
        type=int,
        metavar="INDEX",
        help="index of the token after which the next one is predicted, from 0; default: the last one of each text",
    )
    parser.add_argument(
        "--token",
        default="",
        help="token that heads speak for, as it is written; default: the one that follows in the text, after its end "
        "the likeliest one",
    )
    parser.add_argument(
        "--token-id", type=int, metavar="ID", help="id of the token that heads speak for, in place of the default"
    )
    parser.add_argument("--tokens", type=Path, help="second file to write: the probabilities of next tokens")
    add_output_option(parser)
    parser.set_defaults(run=next_token)


def next_token(arguments: argparse.Namespace) -> None:
    """Measure what each head of a decoder says for the next token of a text; write a row per text and head.

    What a head adds to the logit of the token is direct: what later layers make of its output is left out. Rows for
    what else the layers add, and for the embedding, follow; all together sum to the logit.
    """
    texts = read_texts(arguments.texts, arguments.text_columns)
    check_output(arguments.output, TABLES, [arguments.texts])
    if arguments.tokens:
        check_output(arguments.tokens, TABLES, [arguments.texts, arguments.output])
    checkpoint, settings = loaded(arguments)
    n_ids = checkpoint.full_model.config.get_text_config().vocab_size
    if arguments.token_id is not None and not 0 <= arguments.token_id < n_ids:
        raise AnalysisError(f"There is no token with the id {arguments.token_id}. Choose one from 0 to {n_ids - 1:,}.")
    prepared = prepared_texts(checkpoint, texts, settings, arguments.too_long)
    tables: list[tuple[pd.DataFrame, pd.DataFrame]] = []
    for index, text in progress_bar(([indexed] for indexed in prepared.items()), len(prepared)):
        text_tables = _text_tables(checkpoint, text, settings, arguments)
        tables.append((text_tables[0].assign(text=index), text_tables[1].assign(text=index)))
    facts = checkpoint_facts(checkpoint, settings) | facts_of_texts(texts)
    for output, parts in zip((arguments.output, arguments.tokens), zip(*tables, strict=True), strict=True):
        if output:
            table = pd.concat(parts, ignore_index=True)
            write_table(output, table[["text", *table.columns.drop("text")]], facts)


def _text_tables(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings, arguments: argparse.Namespace
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What heads say for the next token of a text, and the likeliest next tokens."""
    from attention_sieve.core.passes.batches import attention_of_token
    from attention_sieve.core.passes.outputs import next_tokens, token_id

    n_tokens = len(text.queries.ids)
    if arguments.after is not None and not 0 <= arguments.after < n_tokens:
        raise AnalysisError(f"There is no token {arguments.after} in a text of {n_tokens:,} tokens. Count from 0.")
    expected = next_tokens(checkpoint, text, settings, arguments.after, arguments.token)
    if expected is None:
        raise AnalysisError(f"{checkpoint.files.name} predicts no next token. Choose a causal language model.")
    token = expected.ids[0] if expected.follows is None else expected.follows
    if arguments.token_id is not None:
        token = arguments.token_id
    elif arguments.token:
        token = token_id(checkpoint, arguments.token)
    row = attention_of_token(checkpoint, text, settings, expected.position)
    added = _added(checkpoint, text, settings, expected.position, token)
    fetched = fetching(row, text.queries.ids[: expected.position + 1], token, added)
    heads = fetching_table(fetched, text.keys.tokens).astype({"layer": "Int64", "head": "Int64", "position": "Int64"})
    if added is not None:
        heads = pd.concat([heads, added.table()], ignore_index=True)
    heads = heads.assign(token=checkpoint.tokenizer.decode([token]))
    all_on, probability = np.exp(expected.log_probabilities)
    tokens = pd.DataFrame({"after": expected.position, "token": expected.names, "id": expected.ids, "all on": all_on})
    follows = tokens["id"] == expected.follows
    return heads[["token", *heads.columns.drop("token")]], tokens.assign(probability=probability, follows=follows)


def _added(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings, position: int, token: int
) -> Attribution | None:
    """What each part adds to the logit of a token; None, with the reason on standard error, where that is not known."""
    from attention_sieve.core.importance.passes.direct_path import logit_attribution

    try:
        return logit_attribution(checkpoint, text, settings, position, token)
    except AnalysisError as error:
        print(f"What heads add is not known. {error}", file=sys.stderr)
        return None
