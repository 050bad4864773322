// Curves on the two canvases: all links on the base canvas, the links of one token on the overlay.

const ALPHA_BUCKETS = 12;
const HEAD_DASHES = [7, 3]; // distinguishes heads of the same colour; in a difference, also marks less attention

/** Add a link's curve to the path unless it lies entirely outside the rows that are drawn. */
function addCurve(path, frame, query, key) {
  const from = (query + 0.5) * frame.rowHeight;
  const to = (key + 0.5) * frame.rowHeight;
  if (Math.max(from, to) + frame.rowHeight < frame.top || Math.min(from, to) - frame.rowHeight > frame.end) return;
  path.moveTo(0, from);
  path.bezierCurveTo(frame.width * 0.4, from, frame.width * 0.6, to, frame.width, to);
}

/** Draw links with few strokes: one path per stroke style and strength step, weakest first. */
function drawLinks(context, frame, table, links, colors, strong) {
  const nPens = colors.pens.length;
  const paths = Array.from({ length: ALPHA_BUCKETS * nPens });
  for (const at of links) {
    const [head, query, key] = placeOf(table, at);
    const bucket = Math.min(ALPHA_BUCKETS - 1, Math.floor(table.strength[at] * ALPHA_BUCKETS));
    const pen = penOf(table, colors, head, query, key);
    const path = (paths[bucket * nPens + pen] ??= new Path2D());
    addCurve(path, frame, query, key);
  }
  paths.forEach((path, number) => {
    if (!path) return;
    const strength = (Math.floor(number / nPens) + 0.6) / ALPHA_BUCKETS;
    const pen = number % nPens;
    context.strokeStyle = colors.pens[pen];
    context.setLineDash(colors.dashed[pen] ? HEAD_DASHES : []);
    // Weak links stay visible: their weight is in the width, and the colour is never paler than 3:1.
    context.globalAlpha = Math.max(leastAlpha(colors.pens[pen], colors.background), strong ? 0.3 + strength : strength);
    context.lineWidth = strong ? 1.3 + strength * 4 : 0.8 + strength * 2.4;
    context.stroke(path);
  });
  context.setLineDash([]);
  context.globalAlpha = 1;
}

/** How opaque a colour has to be on a background for a contrast of 3:1. */
function leastAlpha(color, background) {
  let part = 0.1;
  while (part < 1 && contrast(mixed(background, color, part), background) < LEAST_CONTRAST) part += 0.05;
  return Math.min(1, part);
}

/** One stroke style per target of a single head, or per head; per query word if the reader asks for it: the pieces of a
 * word share one. */
function linkColors(view) {
  const { table, colors, source } = view;
  if (!usesWordPens(view)) {
    if (!usesTargets(view)) return colors;
    table.targets ??= targetsOfLinks(table, source);
    return { ...themeColors(view.elements.view, source.data.targets), ofLink: table.targets };
  }
  const nPens = source.data.wordPens.length;
  let [count, last] = [-1, null];
  const ofQuery = table.rows.from.map(({ word }) => {
    if (word < 0 || word !== last) count++;
    last = word;
    return count % nPens;
  });
  return { ...themeColors(view.elements.view, source.data.wordPens), ofQuery };
}

function usesWordPens(view) {
  return view.choices.penPerWord && !view.choices.matrix && !view.table.signed && visibleHeads(view).length === 1;
}

/** Index of a link's stroke style: its query word, its target, its head or, in a difference, 0 for more, 1 for less. */
function penOf(table, { ofQuery, ofLink }, head, query, key) {
  if (ofQuery) return ofQuery[query];
  if (ofLink) return ofLink[query * table.nKeys + key];
  return table.signed ? Number(weightAt(table, head, query, key) < 0) : head;
}

function placeOf(table, at) {
  const key = at % table.nKeys;
  const row = (at - key) / table.nKeys;
  return [Math.floor(row / table.nQueries), row % table.nQueries, key];
}

/** Draw the sieve behind all links in a single stroke, so that crossing curves do not add up to a dark patch. */
function drawSieveRails(context, frame, table, colors, pair) {
  const path = new Path2D();
  for (let query = 0; query < table.nQueries; query++) {
    for (let key = 0; key < table.nKeys; key++) {
      if (inSieve(table, query, key) && inPair(table, pair, query, key)) addCurve(path, frame, query, key);
    }
  }
  context.strokeStyle = colors.ink;
  context.globalAlpha = 0.08;
  context.lineWidth = Math.min(9, frame.rowHeight * 0.4);
  context.stroke(path);
  context.globalAlpha = 1;
}

/** Draw the sieve of one token: dashed curves for the links that a head with this role should have. */
function drawSieveOfRow(context, frame, table, colors, { side, row }, pair) {
  const path = new Path2D();
  for (let other = 0; other < table.rows[otherSide(side)].length; other++) {
    const [query, key] = side === "from" ? [row, other] : [other, row];
    if (inSieve(table, query, key) && inPair(table, pair, query, key)) addCurve(path, frame, query, key);
  }
  context.strokeStyle = colors.ink;
  context.globalAlpha = 0.55;
  context.lineWidth = 1.5;
  context.setLineDash([3, 4]);
  context.stroke(path);
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function inSieve(table, query, key) {
  return table.sieve !== null && table.sieve[query * table.nKeys + key] === 1;
}
