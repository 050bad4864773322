// The view itself: the token that is pointed at or pinned, and which parts are redrawn when.

const MOST_HEADS_WITH_NUMBERS = 3;
const NARROW = 560;
const NUMBER_TYPE = 11; // pixels; as in arcs.css

const views = new WeakMap();
const choicesOf = new WeakMap(); // outlives the view, so that the reader's settings survive new data

export default function ({ data: sent, parentElement, setStateValue, setTriggerValue }) {
  const data = dataOf(sent);
  if (!views.has(parentElement)) views.set(parentElement, newView(parentElement, data));
  const view = views.get(parentElement);
  view.send = (asked) => setTriggerValue("asked", asked);
  view.tell = (look) => setStateValue("look", look);
  receive(view, data);
  return () => {
    dispose(view);
    views.delete(parentElement);
  };
}

function newView(parent, data) {
  if (!choicesOf.has(parent)) choicesOf.set(parent, firstChoices(data));
  const find = (selector) => parent.querySelector(selector);
  const view = {
    choices: choicesOf.get(parent),
    elements: {
      view: find(".view"),
      heads: find(".heads"),
      signs: find(".signs"),
      targets: find(".targets"),
      controls: find(".controls"),
      windowNote: find(".window-note"),
      specialsNote: find(".specials-note"),
      sieveNote: find(".sieve-note"),
      box: find(".box"),
      columns: find(".columns"),
      headings: { from: find(".heading.from"), to: find(".heading.to") },
      drawing: find(".drawing"),
      base: find(".base"),
      overlay: find(".overlay"),
      from: find(".tokens.from"),
      to: find(".tokens.to"),
      matrices: find(".matrices"),
      summary: find(".summary"),
      ask: find(".ask"),
      free: find(".free"),
      live: find(".live"),
    },
    hover: null,
    marked: [],
    listening: new AbortController(),
  };
  listen(view);
  watchSize(view);
  joinGroup(view);
  listenForPreviews(view);
  document.fonts?.ready.then(() => !view.listening.signal.aborted && redraw(view));
  return view;
}

function firstChoices(data) {
  return { ...choicesOfLook(data), pin: null, text: null };
}

function dispose(view) {
  view.listening.abort();
  leaveGroup(view);
  view.sizes.disconnect();
  view.places.disconnect();
  clearTimeout(view.grace);
  neverMind(view);
  cancelAnimationFrame(view.frame);
}

/** Store data from Python. Switches keep their state if it still applies, the pin only if the tokens are the same. */
function receive(view, data) {
  const { choices, elements } = view;
  const queries = data.queries;
  const keys = data.keys ?? queries;
  const text = data.text ?? JSON.stringify([queries, keys].map(({ start, tokens }) => [start, tokens]));
  const isPushed = choices.looks !== data.looks;
  if (choices.text !== text || isPushed) {
    Object.assign(choices, { text, looks: data.looks, pin: isPushed ? pushedPin(data, queries, keys) : null });
  }
  const pairs = pairOptions(queries, keys).map(([, pair]) => String(pair));
  if (!pairs.includes(String(choices.pair))) choices.pair = null;
  const isOther = view.text !== text;
  if (isOther || view.source.data.attention !== data.attention) view.hover = null;
  view.text = text;
  view.own = null;
  const [nQueries, nKeys] = [queries.tokens.length, keys.tokens.length];
  const inside = decodeInside(data.inside, data.heads.length * nQueries);
  view.source = {
    data,
    queries,
    keys,
    inside,
    attention: data.signed ? decodeDifference(data.attention) : decodeAttention(data.attention, nKeys, inside),
    sieve: data.sieve && decodeSieve(data.sieve.cells, nQueries * nKeys),
    grammar: data.grammar && decodeSieve(data.grammar, nQueries * nKeys),
  };
  if (isOther) adoptChoices(view);
  takeAsked(view);
  elements.view.setAttribute("aria-label", data.label);
  elements.view.dataset.controls = data.controls;
  elements.box.style.maxHeight = data.height ? `${data.height}px` : "";
  rebuild(view);
  redraw(view);
}

/** The pinned token that Python gives: that of the link, or of the page. */
function pushedPin(data, queries, keys) {
  const { pinned } = choicesOfLook(data);
  if (!pinned) return null;
  const { start, tokens } = pinned.side === "from" ? queries : keys;
  const token = pinned.position - start;
  return token >= 0 && token < tokens.length ? { side: pinned.side, token } : null;
}

function rebuild(view) {
  view.table = buildTable(view.source, view.choices);
  renderTokens(view);
}

/** Redraw everything from the current table: after new data, a switch, a resize, a theme change or a font load. */
function redraw(view) {
  const { elements, choices, source } = view;
  view.colors = themeColors(elements.view, source.data.signed?.pens ?? source.data.heads);
  view.linkColors = linkColors(view);
  renderHeadChips(view);
  renderSigns(view);
  renderControls(view);
  renderNotes(view);
  elements.box.hidden = choices.matrix;
  elements.matrices.hidden = !choices.matrix;
  if (choices.matrix) renderMatrices(view);
  else drawBase(view);
  renderTargets(view);
  drawFocus(view);
}

function choose(view, change) {
  take(view, change);
  tellChoice(view, change);
  tellLook(view);
  requestAnimationFrame(() => announce(view));
}

function take(view, change) {
  Object.assign(view.choices, change);
  if ("byWord" in change || "hideSpecials" in change) {
    view.hover = null;
    rebuild(view);
  }
  syncControls(view);
  // A slider fires faster than a long text can be drawn, so draw at most once per frame.
  drawSoon(view, true);
}

function layOut(view) {
  const { elements, table } = view;
  const width = elements.view.clientWidth;
  const nHeads = visibleHeads(view).length;
  view.numbered = nHeads <= MOST_HEADS_WITH_NUMBERS && (width >= NARROW || nHeads === 1);
  const box = Math.max(3, Math.min(12, Math.floor((width >= NARROW ? 84 : 40) / nHeads)));
  const style = elements.columns.style;
  const number = ((width >= NARROW ? 30 : 28) + (table.signed ? 9 : 0)) * enlarged(elements.columns);
  view.boxWidth = box;
  style.setProperty("--number", `${number}px`);
  style.setProperty("--boxes", `${view.numbered ? nHeads * (box + number) : nHeads * box + number}px`);
  style.setProperty("--label", `${width >= NARROW ? 180 : Math.round(width * 0.2)}px`);
  view.drawnWidth = width;
  const rowHeight = rowHeightOf(view);
  view.drawnRow = rowHeight;
  const height = rowHeight * Math.max(table.nQueries, table.nKeys);
  return { rowHeight, width: elements.drawing.clientWidth, height };
}

// How many times larger than usual a page wants what stands beside the words.
function enlarged(columns) {
  return (parseFloat(getComputedStyle(columns).getPropertyValue("--aside-type")) || NUMBER_TYPE) / NUMBER_TYPE;
}

function rowHeightOf({ elements }) {
  return parseFloat(getComputedStyle(elements.columns).getPropertyValue("--row"));
}

function drawBase(view) {
  view.frameSize = layOut(view);
  const kept = keptOf(view);
  const share = sharedShare(view);
  const links = share < kept.share ? linksBelow(view.table, kept.links, share) : kept.links;
  view.links = { total: kept.total, drawn: links.length, share, kept: links };
  drawBand(view);
  tellShare(view, share);
  markOutside(view);
  colorQueries(view);
}

/** Draw all links in the visible part and one screen above and below it, so that scrolling rarely needs a redraw. */
function drawBand(view) {
  const { elements, table, choices, colors, frameSize } = view;
  const { top, end } = seenPart(view);
  const spare = window.innerHeight;
  view.band = { top: Math.max(0, top - spare), end: Math.min(frameSize.height, end + spare) };
  const context = clearedPart(view, elements.base, view.band);
  const frame = { ...frameSize, ...view.band };
  if (table.sieve) drawSieveRails(context, frame, table, colors, choices.pair);
  drawLinks(context, frame, table, view.links.kept, view.linkColors, false);
}

/** Whether some visible rows lie outside the band whose links are drawn. */
function isBeyondBand(view) {
  if (view.choices.matrix) return false;
  const { top, end } = seenPart(view);
  return end > top && (top < view.band.top || end > view.band.end);
}

/** Links that this view alone can draw; recomputed only when the table, the visible heads or the limits change. */
function keptOf(view) {
  const { table, choices } = view;
  const heads = visibleHeads(view);
  const limit = limitOf(choices);
  const asked = JSON.stringify([heads, limit, choices.pair]);
  if (view.kept?.table !== table || view.kept.asked !== asked) {
    view.kept = { table, asked, ...keptLinks(table, heads, limit, choices.pair) };
  }
  return view.kept;
}

/** The highlighted token: the pinned one, otherwise the one under the pointer or with keyboard focus. */
function focusOf(view) {
  return shownPin(view) ?? view.hover;
}

function shownPin(view) {
  const { pin } = view.choices;
  const row = pin ? view.table.rowOf[pin.side][pin.token] : -1;
  return row >= 0 ? { side: pin.side, row } : null;
}

function drawFocus(view) {
  const { elements, choices } = view;
  const focus = focusOf(view);
  const pin = shownPin(view);
  elements.view.classList.toggle("focused", Boolean(focus));
  const areWeights = !view.table.signed && !choices.matrix && !isWindow(view.source);
  elements.view.classList.toggle("numbered", view.numbered && areWeights);
  elements.free.hidden = !pin;
  offerToAsk(view, pin);
  markTokens(view, focus, pin);
  if (choices.matrix) {
    showSummary(view, restingSummary(view));
    return;
  }
  const seen = seenPart(view);
  const context = clearedPart(view, elements.overlay, seen);
  markAsked(view);
  if (isAsking(view)) {
    drawGuess(view, context, { ...view.frameSize, ...seen });
    showSummary(view, askedSummary(view));
    return;
  }
  if (!focus) {
    showSummary(view, restingSummary(view));
    return;
  }
  const links = linksOfRow(view.table, visibleHeads(view), choices.pair, focus);
  drawFocusLinks(view, context, { ...view.frameSize, ...seen }, focus, links);
  showBoxes(view, focus, links);
  drawGuess(view, context, { ...view.frameSize, ...seen });
  showSummary(view, focusSummary(view, focus, links));
}

/** Clear a canvas and fit it to some of the rows, as the visible part of a long text is far smaller than the whole. */
function clearedPart(view, canvas, { top, end }) {
  const context = clearedCanvas(canvas, view.frameSize.width, end - top);
  canvas.style.top = `${top}px`;
  context.translate(0, -top);
  return context;
}

/** The part of the rows inside the box and at most half a screen outside the viewport, in pixels from the first row. */
function seenPart(view) {
  const { box, drawing } = view.elements;
  const { height, rowHeight } = view.frameSize;
  const [shown, whole] = [box.getBoundingClientRect(), drawing.getBoundingClientRect()];
  const spare = matchMedia("print").matches ? Infinity : window.innerHeight / 2; // sheets show all of the page
  const top = Math.max(0, Math.min(height, Math.max(shown.top, -spare) - whole.top - rowHeight));
  const end = Math.min(height, Math.min(shown.bottom, window.innerHeight + spare) - whole.top + rowHeight);
  return { top, end: Math.max(top, end) };
}

function drawFocusLinks(view, context, frame, focus, links) {
  const { table, choices, colors } = view;
  if (table.sieve) drawSieveOfRow(context, frame, table, colors, focus, choices.pair);
  const kept = links.filter(({ at }) => isKept(table, limitOf(choices), at)).slice(0, MOST_FOCUS_LINKS);
  drawLinks(context, frame, table, kept.map(({ at }) => at), view.linkColors, true);
}
