// Views in a group share highlight, pin, scroll position, drawn share and all switches but the sieve's: two checkpoints
// on the same text, side by side, where any visible difference must come from the checkpoints.

const GROUP_EVENT = "attention-sieve:arcs";
const LINKED_CHOICES = ["headsOff", "strongest", "penPerWord", "share", "matrix", "byWord", "hideSpecials", "pair"];

function joinGroup(view) {
  const answer = ({ detail: { group, text, found } }) => {
    if (view.source?.data.group === group && view.choices.text === text) found.push(view);
  };
  document.addEventListener(GROUP_EVENT, answer, { signal: view.listening.signal });
}

/** The other views on the page that belong to the same group and show the same text. */
function matesOf(view) {
  const { group } = view.source.data;
  if (group === null) return [];
  const found = [];
  document.dispatchEvent(new CustomEvent(GROUP_EVENT, { detail: { group, text: view.choices.text, found } }));
  return found.filter((mate) => mate !== view);
}

/** Copy settings and pin from another view of the group if that view already shows this text. */
function adoptChoices(view) {
  const [mate] = matesOf(view);
  if (mate) Object.assign(view.choices, linked(mate.choices), { pin: mate.choices.pin });
}

function linked(choices) {
  return Object.fromEntries(Object.entries(choices).filter(([name]) => LINKED_CHOICES.includes(name)));
}

/** Apply a change to the other views in the group; they do not forward it, so it cannot circulate. */
function tellChoice(view, change) {
  const shared = linked(change);
  if (Object.keys(shared).length) matesOf(view).forEach((mate) => take(mate, shared));
}

/** The largest share that every view in the group can draw: a view with fewer links must not show more of them. */
function sharedShare(view) {
  return Math.min(...[view, ...matesOf(view)].map((one) => keptOf(one).share));
}

/** Redraw the other views that drew a different share; those already due for a redraw will look it up themselves. */
function tellShare(view, share) {
  for (const mate of matesOf(view)) {
    if (mate.links && mate.links.share !== share && !mate.choices.matrix && !mate.drawsAll) drawSoon(mate, true);
  }
}

/** Update the rest of the group, which may be able to draw a larger share without this view. */
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
  view.ledTo = box.scrollTop; // less than requested if this view has fewer rows
  drawSoon(view, view.choices.matrix);
}

/** Whether the box is where another view scrolled it, and the reader has not scrolled it since. */
function isLed(view) {
  if (view.ledTo !== undefined && Math.abs(view.elements.box.scrollTop - view.ledTo) < 1) return true;
  view.ledTo = undefined;
  return false;
}
