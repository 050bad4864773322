// Pointer and keyboard input: pointing at tokens and cells, moving between them, and pinning.

const HOVER_GRACE = 300;
const PARTS_SEEN = [...Array(21).keys()].map((part) => part / 20);

function listen(view) {
  const { box, columns, matrices, ask, free, view: root } = view.elements;
  const options = { signal: view.listening.signal };
  columns.addEventListener("pointermove", (event) => onPointerMove(view, event), options);
  columns.addEventListener("pointerleave", () => leaveSoon(view), options);
  columns.addEventListener("click", (event) => onClick(view, event), options);
  columns.addEventListener("focusin", (event) => onFocus(view, event), options);
  columns.addEventListener("focusout", () => leaveSoon(view), options);
  columns.addEventListener("keydown", (event) => onTokenKey(view, event), options);
  box.addEventListener("scroll", () => onBoxScroll(view), { ...options, passive: true });
  document.addEventListener("scroll", () => onScroll(view), { ...options, capture: true, passive: true });
  root.addEventListener("keydown", (event) => stepHead(view, event), { ...options, capture: true });
  root.addEventListener("keydown", (event) => event.key === "Escape" && unpin(view), options);
  ask.addEventListener("click", () => askAbout(view), options);
  free.addEventListener("click", () => unpin(view), options);
  matrices.addEventListener("pointermove", (event) => onMatrixMove(view, event), options);
  matrices.addEventListener("pointerleave", () => leaveMatrices(view), options);
  matrices.addEventListener("keydown", (event) => onMatrixKey(view, event), options);
}

function watchSize(view) {
  view.sizes = new ResizeObserver(() => {
    if (view.table && (view.elements.view.clientWidth !== view.drawnWidth || rowHeightOf(view) !== view.drawnRow)) {
      [view.drawnWidth, view.drawnRow] = [view.elements.view.clientWidth, rowHeightOf(view)];
      drawSoon(view, true);
    }
  });
  view.sizes.observe(view.elements.view);
  view.sizes.observe(view.elements.from); // the viewport's height can change the row height without resizing the view
  // What disappears above the view brings other rows into view, too, without scrolling.
  view.places = new IntersectionObserver(() => onScroll(view), { rootMargin: "50% 0px", threshold: PARTS_SEEN });
  view.places.observe(view.elements.drawing);
}

/** Redraw in the next frame: everything, or only what focus and scrolling change. Requests until then are merged. */
function drawSoon(view, everything) {
  view.drawsAll ||= everything;
  cancelAnimationFrame(view.frame);
  view.frame = requestAnimationFrame(() => {
    if (view.drawsAll) redraw(view);
    else {
      if (isBeyondBand(view)) drawBand(view);
      drawFocus(view);
    }
    view.drawsAll = false;
  });
}

/** Handle scrolling inside the view's shadow tree: the document does not receive these events. */
function onBoxScroll(view) {
  if (!isLed(view)) tellGroup(view);
  onScroll(view);
}

/** Handle scrolling of the box or the page, which brings other rows into view. */
function onScroll(view) {
  if (view.table && (focusOf(view) || isBeyondBand(view))) drawSoon(view, false);
}

function tokenOf(event) {
  const token = event.target.closest?.(".token");
  return token ? { element: token, side: token.dataset.side, row: Number(token.dataset.row) } : null;
}

function onPointerMove(view, event) {
  // A page that scrolls under a resting pointer also fires pointermove; ignore those events.
  const rests = view.pointerX === event.screenX && view.pointerY === event.screenY;
  [view.pointerX, view.pointerY] = [event.screenX, event.screenY];
  if (rests || event.pointerType === "touch") return;
  const token = tokenOf(event);
  if (token) hover(view, { side: token.side, row: token.row });
  else leaveSoon(view);
}

/** Cancel the delayed end of hovering in this view and its group, because the reader is now in this view. */
function enter(view) {
  for (const each of [view, ...matesOf(view)]) {
    clearTimeout(each.grace);
    each.grace = null;
  }
}

function hover(view, place) {
  if (place) enter(view);
  view.grace = null;
  const same = view.hover && place && view.hover.side === place.side && view.hover.row === place.row;
  if (same || (!view.hover && !place)) return;
  view.hover = place;
  if (!shownPin(view)) drawSoon(view, false);
  tellGroup(view);
}

function leaveSoon(view) {
  if (view.hover && !view.grace) view.grace = setTimeout(() => hover(view, null), HOVER_GRACE);
}

function onFocus(view, event) {
  const token = tokenOf(event);
  if (!token?.element.matches(":focus-visible")) return;
  enter(view);
  view.hover = { side: token.side, row: token.row };
  drawFocus(view);
  announce(view);
  tellGroup(view);
}

function onClick(view, event) {
  const token = tokenOf(event);
  if (token) pin(view, token);
}

/** Pin a token, or unpin it if it is already pinned. */
function pin(view, { side, row }) {
  const pinned = shownPin(view);
  if (pinned && pinned.side === side && pinned.row === row) {
    unpin(view);
    return;
  }
  view.choices.pin = { side, token: view.table.rows[side][row].tokens[0] };
  drawFocus(view);
  announce(view);
  tellGroup(view);
  tellLook(view);
}

/** Enter on a word is the guess of a lesson; a word of the left-hand column is none. */
function guess(view, { side, row }) {
  if (side !== "to") return;
  view.choices.pin = { side, token: view.table.rows[side][row].tokens[0] };
  askAbout(view);
}

function unpin(view) {
  if (!view.choices.pin) return;
  view.choices.pin = null;
  if (view.choices.matrix) redraw(view);
  else drawFocus(view);
  announce(view);
  tellGroup(view);
  tellLook(view);
}

/** Show the button that asks about the pinned token; hide it without a pin or if the page cannot answer. */
function offerToAsk(view, pin) {
  const { ask } = view.elements;
  const { data } = view.source;
  ask.hidden = !pin || !data.ask?.[pin.side];
  if (!ask.hidden) ask.textContent = data.ask[pin.side];
}

function askAbout(view) {
  const { side, token } = view.choices.pin;
  const { start } = side === "from" ? view.source.queries : view.source.keys;
  tellNow(view);
  view.send({ side, token: start + token });
}

function onTokenKey(view, event) {
  const token = tokenOf(event);
  if (!token) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    if (event.key === "Enter" && isAsking(view)) guess(view, token);
    else pin(view, token);
    return;
  }
  const place = neighbour(view, token, event.key);
  if (!place) return;
  event.preventDefault();
  moveFocus(view, place);
}

function neighbour(view, { side, row }, key) {
  const { rows } = view.table;
  const last = rows[side].length - 1;
  const across = Math.min(row, rows[otherSide(side)].length - 1);
  const places = {
    ArrowDown: { side, row: Math.min(last, row + 1) },
    ArrowUp: { side, row: Math.max(0, row - 1) },
    ArrowLeft: { side: "from", row: side === "from" ? row : across },
    ArrowRight: { side: "to", row: side === "to" ? row : across },
    Home: { side, row: 0 },
    End: { side, row: last },
  };
  return places[key];
}

function moveFocus(view, { side, row }) {
  view.tokens[side].forEach((token, number) => (token.tabIndex = number === row ? 0 : -1));
  view.tokens[side][row].focus();
}

function onMatrixMove(view, event) {
  const figure = event.target.closest?.(".matrix");
  view.elements.matrices.querySelectorAll(".matrix").forEach((other) => {
    if (other !== figure) other.querySelector(".marker").hidden = true;
  });
  if (figure) readCell(view, figure, cellUnder(view, figure, event));
}

function leaveMatrices(view) {
  view.elements.matrices.querySelectorAll(".matrix").forEach((figure) => readCell(view, figure, null));
}

function onMatrixKey(view, event) {
  const figure = event.target.closest?.(".matrix");
  if (figure && moveCell(view, figure, event.key)) event.preventDefault();
}
