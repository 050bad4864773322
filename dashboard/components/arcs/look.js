// The reader's settings as query parameters of the link; `look.py` documents their meaning.

const TELL_AFTER = 250; // milliseconds without another change

function choicesOfLook({ look, share }) {
  const [side, position] = (look.pin ?? "").split("-");
  return {
    matrix: look.view === "matrix",
    byWord: look.rows === "words",
    penPerWord: look.colours === "words",
    hideSpecials: look.specials === "hidden",
    sieve: look.sieve ?? "",
    pair: look.segments ? look.segments.split("-").map((letter) => "AB".indexOf(letter)) : null,
    share: look.share ? Number(look.share) : share,
    strongest: look.strongest ? Number(look.strongest) : null,
    pinned: look.pin ? { side, position: Number(position) } : null,
    headsOff: look.hidden ? look.hidden.split(",").map(headOfLink) : [],
  };
}

function lookOf({ choices, source }) {
  const { pin } = choices;
  const start = pin && (pin.side === "from" ? source.queries : source.keys).start;
  const words = {
    view: choices.matrix && "matrix",
    rows: choices.byWord && "words",
    colours: choices.penPerWord && "words",
    specials: choices.hideSpecials && "hidden",
    sieve: choices.sieve,
    segments: choices.pair && choices.pair.map((segment) => "AB"[segment]).join("-"),
    share: choices.share !== source.data.share && String(choices.share),
    strongest: choices.strongest && String(choices.strongest),
    pin: pin && `${pin.side}-${start + pin.token}`,
    hidden: choices.headsOff.map((name) => name.slice(1).replace(" H", "-")).join(","),
  };
  return Object.fromEntries(Object.entries(words).filter(([, word]) => word));
}

function headOfLink(head) {
  const [layer, number] = head.split("-");
  return `L${Number(layer)} H${Number(number)}`;
}

/** Update the link to the current settings; while a slider moves, wait until it rests. */
function tellLook(view) {
  if (view.source.data.tells) later(view, () => tellNow(view), TELL_AFTER);
}

/** Update the link immediately. Send questions only after this: every message says which tab is open, and an outdated
 * one would close the tab that the answer opens. */
function tellNow(view) {
  neverMind(view);
  if (view.source.data.tells) view.tell({ ...lookOf(view), at: performance.now() });
}
