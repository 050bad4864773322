// The view itself: receives the data, and decides when to redraw.

const views = new WeakMap();
// Selected windows by key, kept for when the page discards and rebuilds the elements.
const remembered = new Map();

export default function ({ data, parentElement, setStateValue }) {
  if (!views.has(parentElement)) views.set(parentElement, newView(parentElement));
  const view = views.get(parentElement);
  view.send = (start) => setStateValue("start", start);
  receive(view, data);
  return () => {
    view.listening.abort();
    view.sizes.disconnect();
    cancelAnimationFrame(view.frame);
    views.delete(parentElement);
  };
}

function newView(parent) {
  const find = (selector) => parent.querySelector(selector);
  const view = {
    elements: {
      root: find(".view"),
      legend: find(".legend"),
      maps: find(".maps"),
      summary: find(".summary"),
      live: find(".live"),
    },
    drag: null,
    listening: new AbortController(),
  };
  listen(view);
  view.sizes = new ResizeObserver(() => {
    if (view.data && view.elements.root.clientWidth !== view.drawnWidth) drawSoon(view);
  });
  view.sizes.observe(view.elements.root);
  document.fonts?.ready.then(() => view.data && !view.listening.signal.aborted && draw(view));
  return view;
}

function listen(view) {
  const { maps } = view.elements;
  const options = { signal: view.listening.signal };
  maps.addEventListener("pointerdown", (event) => onPress(view, event), options);
  maps.addEventListener("pointermove", (event) => onMove(view, event), options);
  maps.addEventListener("pointerup", (event) => onRelease(view, event), options);
  maps.addEventListener("pointercancel", () => cancelMove(view), options);
  maps.addEventListener("pointerleave", () => point(view, null), options);
  maps.addEventListener("keydown", (event) => onKey(view, event), options);
  maps.addEventListener("focusout", () => !view.drag && cancelMove(view), options);
}

function receive(view, data) {
  const isSame = view.data?.ratios === data.ratios;
  view.data = data;
  if (!isSame) {
    view.octaves = decodeOctaves(data.ratios);
    view.top = topOctave(view.octaves);
  }
  const kept = remembered.get(data.key);
  view.chosen = kept?.rev === data.rev ? kept.start : data.start;
  remember(view);
  view.elements.maps.setAttribute("aria-label", `${data.label}. Arrow keys move the window, Page Down and Page Up move it along the text, Enter shows it.`);
  draw(view);
}

function remember({ data, chosen }) {
  remembered.set(data.key, { rev: data.rev, start: chosen });
}

function draw(view) {
  view.drawnWidth = view.elements.root.clientWidth;
  view.colors = themeColors(view.elements.root, []);
  view.shades = shadesOf(view.colors.background);
  renderLegend(view);
  renderMaps(view);
  showWindow(view, view.drag ? view.shown : view.chosen);
  showSummary(view, restingText(view));
}

function drawSoon(view) {
  cancelAnimationFrame(view.frame);
  view.frame = requestAnimationFrame(() => draw(view));
}

function onMove(view, event) {
  if (view.drag) {
    if (!view.drag.touch) dragTo(view, event);
    return;
  }
  const figure = event.target.closest(".map");
  const place = figure && tokenUnder(view, figure, event);
  const cell = place && isInside(view, place) && place.map((at, axis) => Math.floor(at / view.data.block[axis]));
  point(view, cell ? { figure, cell } : null);
}

/** Mark the cell under the pointer and show its value. */
function point(view, pointed) {
  const { data, elements } = view;
  for (const figure of elements.maps.children) figure.querySelector(".marker").hidden = figure !== pointed?.figure;
  if (!pointed) {
    showSummary(view, restingText(view));
    return;
  }
  const { figure, cell } = pointed;
  const starts = cell.map((place, axis) => place * data.block[axis]);
  const lengths = starts.map((start, axis) => Math.min(data.block[axis], data.tokens[axis] - start));
  placeMarker(view, figure.querySelector(".marker"), starts, lengths);
  showSummary(view, cellText(view, figure.head, cell));
}

function restingText(view) {
  return `Window: ${windowText(view)}. Click or drag on a map to move it.`;
}
