// The two columns of tokens: rows, highlights, and the boxes and numbers for weights beside them.

const LEAST_SHOWN = 0.005;
const LEAST_SHADE = 10; // percent; keeps even a nearly empty box visible, so that its head is not overlooked

/** Build the rows; rebuild them only if they differ, so that a token keeps keyboard focus when the heads change. */
function renderTokens(view) {
  const { elements, table, source } = view;
  const built = JSON.stringify([table.rows, source.queries.name, source.keys.name, isWindow(source)]);
  if (view.rowsBuilt === built) return;
  view.rowsBuilt = built;
  view.marked = [];
  for (const side of ["from", "to"]) {
    nameSide(view, side);
    const rows = table.rows[side];
    elements[side].replaceChildren(...rows.map((_, number) => tokenElement(rows, number, side, isWindow(source))));
  }
  view.tokens = { from: [...elements.from.children], to: [...elements.to.children] };
  elements.view.classList.remove("empty");
}

function isWindow({ queries, keys }) {
  return [queries, keys].some(({ tokens, whole }) => tokens.length < whole);
}

/** Set the column's heading; it names the text if queries and keys come from different texts. */
function nameSide(view, side) {
  const { headings, ...columns } = view.elements;
  const { name } = side === "from" ? view.source.queries : view.source.keys;
  const [axis, short] = side === "from" ? ["queries", "query"] : ["keys", "key"];
  const [strong, between, word] = name ? [name, ", ", axis] : [side, " ", short];
  const term = termElement(word, view.source.data.means[short]);
  headings[side].replaceChildren(newElement("b", "", strong), between, term);
  columns[side].setAttribute("aria-label", `${side === "from" ? "From" : "To"}${name && ` ${name}`}: ${axis}`);
}

/** One row; in a window, with the token's position in the whole text. */
function tokenElement(rows, number, side, inWindow) {
  const row = rows[number];
  const place = inWindow ? `position ${counted(row.position)}` : `${number + 1} of ${rows.length}`;
  const token = newElement("div", row.special ? "token special" : "token");
  token.setAttribute("role", "option");
  token.setAttribute("aria-selected", "false");
  token.setAttribute("aria-label", `${side}: ${row.label}, ${place}${row.special ? ", special token" : ""}`);
  token.tabIndex = number === 0 ? 0 : -1;
  token.title = row.label;
  Object.assign(token.dataset, { side, row: number });
  const label = newElement("bdi", "label", row.label);
  const boxes = newElement("span", "boxes");
  boxes.setAttribute("aria-hidden", "true");
  const parts = inWindow ? [label, newElement("span", "position", counted(row.position)), boxes] : [label, boxes];
  token.append(...(side === "from" ? parts.reverse() : parts));
  return token;
}

/** Clear the old highlights, then highlight the focus, the pin and the sieve's tokens on the other side. */
function markTokens(view, focus, pin) {
  for (const token of view.marked) {
    token.classList.remove("current", "in-sieve");
    token.setAttribute("aria-selected", "false");
    token.querySelector(".boxes").replaceChildren();
  }
  view.marked = [];
  if (!focus) return;
  const mark = (side, row) => {
    const token = view.tokens[side][row];
    view.marked.push(token);
    return token;
  };
  mark(focus.side, focus.row).classList.add("current");
  if (pin) mark(pin.side, pin.row).setAttribute("aria-selected", "true");
  if (!view.table.sieve) return;
  for (let other = 0; other < view.table.rows[otherSide(focus.side)].length; other++) {
    const [query, key] = focus.side === "from" ? [focus.row, other] : [other, focus.row];
    const shown = inSieve(view.table, query, key) && inPair(view.table, view.choices.pair, query, key);
    if (shown) mark(otherSide(focus.side), other).classList.add("in-sieve");
  }
}

/** Fade the tokens that the segment filter leaves without links. */
function markOutside(view) {
  const { pair } = view.choices;
  ["from", "to"].forEach((side, place) => {
    view.table.rows[side].forEach((row, number) => {
      view.tokens[side][number].classList.toggle("outside", pair !== null && row.segment !== pair[place]);
    });
  });
}

/** Show the link colour beside each query if links are coloured by word. */
function colorQueries(view) {
  const { pens, ofQuery } = view.linkColors;
  view.elements.view.classList.toggle("word-pens", Boolean(ofQuery));
  if (ofQuery) view.tokens.from.forEach((token, row) => token.style.setProperty("--pen", pens[ofQuery[row]]));
}

function otherSide(side) {
  return side === "from" ? "to" : "from";
}

/** Show a box per head and the weights (only the largest if space is short) beside visible tokens on the other side. */
function showBoxes(view, focus, links) {
  const heads = visibleHeads(view);
  const weights = new Map();
  const { top, end } = seenPart(view);
  const { rowHeight } = view.frameSize;
  const [first, last] = [top / rowHeight - 1, end / rowHeight];
  for (const { other, head, weight } of links) {
    if (Math.abs(weight) < LEAST_SHOWN) break;
    if (other < first || other > last) continue;
    if (!weights.has(other)) weights.set(other, new Map());
    weights.get(other).set(head, weight);
  }
  for (const [other, byHead] of weights) {
    const token = view.tokens[otherSide(focus.side)][other];
    view.marked.push(token);
    token.querySelector(".boxes").replaceChildren(...boxesOf(view, heads, byHead, linkBetween(focus, other)));
  }
}

function linkBetween({ side, row }, other) {
  return side === "from" ? [row, other] : [other, row];
}

function boxesOf(view, heads, byHead, link) {
  if (view.numbered) {
    return heads.flatMap((head) => [shades(view, [head], byHead, link), numberOf(view.table, byHead.get(head) ?? 0)]);
  }
  return [shades(view, heads, byHead, link), numberOf(view.table, Math.max(...byHead.values()))];
}

/** Draw boxes of several heads as bands of one element's gradient: a long text has too many for separate elements. */
function shades(view, heads, byHead, link) {
  const bands = heads.map((head, place) => {
    const weight = byHead.get(head) ?? 0;
    const shade = LEAST_SHADE + (100 - LEAST_SHADE) * shadeOf(weight);
    const pen = view.linkColors.pens[penOf(view.table, view.linkColors, head, ...link)];
    const color = `${pen}${Math.round(2.55 * shade).toString(16).padStart(2, "0")}`;
    const [start, end] = [place * view.boxWidth, (place + 1) * view.boxWidth];
    return `${color} ${start}px ${end - 1}px, transparent ${end - 1}px ${end}px`;
  });
  const element = newElement("i", "shades");
  element.style.width = `${heads.length * view.boxWidth}px`;
  element.style.backgroundImage = `linear-gradient(90deg, ${bands.join(", ")})`;
  return element;
}

function numberOf(table, weight) {
  return newElement("span", "number", Math.abs(weight) < LEAST_SHOWN ? "" : shownWeight(table, weight));
}
