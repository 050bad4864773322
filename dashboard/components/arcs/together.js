// Views of one group point, pin and scroll together: two checkpoints on the same text, side by side.

const GROUP_EVENT = "attention-sieve:arcs";

function joinGroup(view) {
  const options = { signal: view.listening.signal };
  document.addEventListener(GROUP_EVENT, (event) => followGroup(view, event.detail), options);
}

function tellGroup(view) {
  const { group } = view.source.data;
  if (group === null || view.follows) return;
  const { hover, table, elements } = view;
  const { text, pin } = view.choices;
  const pointed = hover && { side: hover.side, token: table.rows[hover.side][hover.row].tokens[0] };
  const detail = { sender: view, group, text, pin, pointed, scroll: elements.box.scrollTop };
  document.dispatchEvent(new CustomEvent(GROUP_EVENT, { detail }));
}

function followGroup(view, { sender, group, text, pin, pointed, scroll }) {
  if (sender === view || view.source?.data.group !== group || view.choices.text !== text) return;
  const row = pointed ? view.table.rowOf[pointed.side][pointed.token] : -1;
  view.hover = row >= 0 ? { side: pointed.side, row } : null;
  view.choices.pin = pin;
  // Scrolling reports itself only in the next frame; until then this view answers nothing.
  view.follows = view.elements.box.scrollTop !== scroll;
  view.elements.box.scrollTop = scroll;
  drawSoon(view, false);
  if (view.follows) requestAnimationFrame(() => requestAnimationFrame(() => (view.follows = false)));
}
