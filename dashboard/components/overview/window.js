// The window: shown on every map, moved by pointer or keyboard, and sent to Python on release or Enter.

/** Show the window at a position that may not be selected yet; nothing is sent. */
function showWindow(view, start) {
  view.shown = start.map((at, axis) => {
    const last = view.data.tokens[axis] - view.data.size[axis];
    return Math.round(Math.max(0, Math.min(last, at)));
  });
  const isPending = String(view.shown) !== String(view.chosen);
  for (const figure of view.elements.maps.children) {
    const frame = figure.querySelector(".window");
    frame.classList.toggle("pending", isPending);
    placeMarker(view, frame, view.shown, view.data.size);
  }
}

/** Select the window that is shown; the page reruns only if it has moved. */
function chooseWindow(view) {
  if (String(view.shown) === String(view.chosen)) return;
  view.chosen = view.shown;
  remember(view);
  showWindow(view, view.chosen);
  view.send(view.chosen);
}

function windowText(view) {
  const { names, size } = view.data;
  return view.shown.map((start, axis) => stretchText([names[axis], start, start + size[axis]])).join(", ");
}

function onPress(view, event) {
  const figure = event.target.closest(".map");
  if (!figure || event.button !== 0) return;
  const place = tokenUnder(view, figure, event);
  if (!isInside(view, place)) return;
  const isOn = place.every((at, axis) => at >= view.shown[axis] && at < view.shown[axis] + view.data.size[axis]);
  const held = isOn ? place.map((at, axis) => at - view.shown[axis]) : view.data.size.map((length) => length / 2);
  view.drag = { figure, held, touch: event.pointerType === "touch" };
  // A touch may be the start of a scroll, so the window moves only when the finger is lifted.
  if (view.drag.touch) return;
  figure.setPointerCapture(event.pointerId);
  dragTo(view, event);
}

function dragTo(view, event) {
  const { figure, held } = view.drag;
  showWindow(view, tokenUnder(view, figure, event).map((at, axis) => at - held[axis]));
  showSummary(view, `Window: ${windowText(view)}.`);
}

function onRelease(view, event) {
  if (!view.drag) return;
  dragTo(view, event);
  view.drag = null;
  chooseWindow(view);
  announce(view);
}

function cancelMove(view) {
  view.drag = null;
  showWindow(view, view.chosen);
  showSummary(view, restingText(view));
}

/** Arrow keys move by a cell, with Shift by a window; Page Up and Page Down move along both axes of the text. */
function onKey(view, event) {
  if (event.key === "Enter") {
    chooseWindow(view);
    showSummary(view, restingText(view));
  } else if (event.key === "Escape") {
    cancelMove(view);
  } else {
    const start = keyTarget(view, event);
    if (!start) return;
    showWindow(view, start);
    const isPending = String(view.shown) !== String(view.chosen);
    showSummary(view, `Window: ${windowText(view)}.${isPending ? " Enter shows it, Escape goes back." : ""}`);
  }
  event.preventDefault();
  announce(view);
}

function keyTarget(view, { key, shiftKey }) {
  const { size, block, tokens } = view.data;
  const [down, across] = shiftKey ? size : block;
  const steps = {
    ArrowUp: [-down, 0],
    ArrowDown: [down, 0],
    ArrowLeft: [0, -across],
    ArrowRight: [0, across],
    PageUp: size.map((length) => -length),
    PageDown: size,
    Home: tokens.map((count) => -count),
    End: tokens,
  };
  return steps[key]?.map((step, axis) => view.shown[axis] + step);
}
