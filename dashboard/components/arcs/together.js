// Views of one group point, pin and scroll together, have the same switches and draw the same share: two checkpoints on
// the same text, side by side, where whatever differs must come from the checkpoints.

const GROUP_EVENT = "attention-sieve:arcs";
const LINKED_CHOICES = ["headsOff", "strongest", "penPerWord", "share", "matrix", "byWord", "hideSpecials", "pair"];

function joinGroup(view) {
  const answer = ({ detail: { group, text, found } }) => {
    if (view.source?.data.group === group && view.choices.text === text) found.push(view);
  };
  document.addEventListener(GROUP_EVENT, answer, { signal: view.listening.signal });
}

/** The other views on the page that are of this one's group and show the same text. */
function matesOf(view) {
  const { group } = view.source.data;
  if (group === null) return [];
  const found = [];
  document.dispatchEvent(new CustomEvent(GROUP_EVENT, { detail: { group, text: view.choices.text, found } }));
  return found.filter((mate) => mate !== view);
}

/** A view that comes to a text after its mates starts with what the reader has set and pinned in them. */
function adoptChoices(view) {
  const [mate] = matesOf(view);
  if (mate) Object.assign(view.choices, linked(mate.choices), { pin: mate.choices.pin });
}

function linked(choices) {
  return Object.fromEntries(Object.entries(choices).filter(([name]) => LINKED_CHOICES.includes(name)));
}

/** Mates only take a choice and tell nobody, so that it goes round once. */
function tellChoice(view, change) {
  const shared = linked(change);
  if (Object.keys(shared).length) matesOf(view).forEach((mate) => take(mate, shared));
}

/** The largest share that every view of the group can draw: one with fewer links must not show more of them. */
function sharedShare(view) {
  return Math.min(...[view, ...matesOf(view)].map((one) => keptOf(one).share));
}

/** Mates that drew another share draw again; those about to draw will ask by themselves. */
function tellShare(view, share) {
  for (const mate of matesOf(view)) {
    if (mate.links && mate.links.share !== share && !mate.choices.matrix && !mate.drawsAll) drawSoon(mate, true);
  }
}

/** Without this view its mates may be able to draw more. */
function leaveGroup(view) {
  const mates = matesOf(view);
  if (mates.length) tellShare(view, sharedShare(mates[0]));
}

function tellGroup(view) {
  const { hover, table, elements } = view;
  const pointed = hover && { side: hover.side, token: table.rows[hover.side][hover.row].tokens[0] };
  for (const mate of matesOf(view)) follow(mate, pointed, view.choices.pin, elements.box.scrollTop);
}

function follow(view, pointed, pin, scroll) {
  const row = pointed ? view.table.rowOf[pointed.side][pointed.token] : -1;
  const { box } = view.elements;
  view.hover = row >= 0 ? { side: pointed.side, row } : null;
  view.choices.pin = pin;
  box.scrollTop = scroll;
  view.ledTo = box.scrollTop; // less than asked for where this view has fewer rows
  drawSoon(view, view.choices.matrix);
}

/** Whether the box stands where a mate has put it, and not where the reader has scrolled it since. */
function isLed(view) {
  if (view.ledTo !== undefined && Math.abs(view.elements.box.scrollTop - view.ledTo) < 1) return true;
  view.ledTo = undefined;
  return false;
}
