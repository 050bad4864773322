// Present: its style sheet applies from the beginning, so that nothing moves, and as long as the address asks for it.
// Page Down and Page Up, the keys of a remote control, go to the next step and back, wherever the focus is; Streamlit's
// own shortcuts of buttons do nothing while somebody types. So do arrows and Space, except where they have a meaning of
// their own: in text boxes, and for whoever has gone to something by keyboard. A number that was typed is the guess.
// Enter releases a text box that has taken it.
{
  const NEXT = ".st-key-lesson-next button";
  const BACK = ".st-key-lesson-back button";
  const TYPED = ".st-key-lesson-guess:has(.st-key-guessed-number) .st-key-lesson-guess-it button";
  const STEPS = { PageDown: NEXT, PageUp: BACK };
  const FURTHER = { ArrowRight: NEXT, ArrowDown: NEXT, " ": NEXT, ArrowLeft: BACK, ArrowUp: BACK };
  const OWN_KEYS = "input, textarea, select, [contenteditable=true], [role=slider], [role=combobox], [role=radio]";
  const KEYS_BY_KEYBOARD = "button, a, summary, [role=gridcell], [role=option], [role=tab], canvas";
  const CLICK = 500; // milliseconds after a pointer in which a focus comes of it
  const isPresenting = () => new URLSearchParams(location.search).get("present") === "1";
  const layOut = () => (document.querySelector("#present").media = isPresenting() ? "all" : "not all");
  for (const name of ["pushState", "replaceState"]) {
    const write = history[name].bind(history);
    history[name] = (...entry) => {
      write(...entry);
      layOut();
    };
  }
  addEventListener("popstate", layOut);
  layOut();
  let [isByPointer, pointedAt] = [false, -Infinity];
  for (const name of ["pointerdown", "pointerup"]) {
    addEventListener(name, () => ([isByPointer, pointedAt] = [true, performance.now()]), { capture: true });
  }
  addEventListener("focusin", () => (isByPointer = performance.now() - pointedAt < CLICK), { capture: true });
  const selectorOf = (event) => {
    const target = event.composedPath()[0];
    if (STEPS[event.key]) return STEPS[event.key];
    const hasOwn = target.closest?.(OWN_KEYS) || (!isByPointer && target.closest?.(KEYS_BY_KEYBOARD));
    return hasOwn ? undefined : FURTHER[event.key];
  };
  /** A typed number is in its box, and reaches the server with the button of the guess alone. */
  const typedGuess = () => document.querySelector(".st-key-guessed-number input")?.value && document.querySelector(TYPED);
  const rest = document.documentElement.dataset;
  addEventListener("keydown", (event) => {
    const { ctrlKey, metaKey, altKey, shiftKey } = event;
    const selector = selectorOf(event);
    const button = selector && ((selector === NEXT && typedGuess()) || document.querySelector(selector));
    if (!button || !isPresenting() || ctrlKey || metaKey || altKey || shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    document.activeElement.blur(); // a text box gives its text to the server as it is left
    rest.pointer = "rests"; // what comes to lie under it shows no tooltip
    button.click();
  }, { capture: true });
  addEventListener("pointermove", ({ movementX, movementY }) => {
    if (rest.pointer && (movementX || movementY)) delete rest.pointer;
  }, { capture: true });
  addEventListener("keydown", ({ key, target, isComposing, shiftKey }) => {
    const isBox = target.matches?.(".st-key-text textarea, .st-key-sentence-to-add input");
    if (key === "Enter" && isBox && isPresenting() && !isComposing && !shiftKey) setTimeout(() => target.blur());
  });
}
