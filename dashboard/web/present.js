// Present: its style sheet applies from the beginning, so that nothing moves, and as long as the address asks for it.
// Page Down and Page Up, the keys of a remote control, go to the next step and back, wherever the focus is; Streamlit's
// own shortcuts of buttons do nothing while somebody types. Enter releases a text box that has taken it.
{
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
  const steps = { PageDown: ".st-key-lesson-next button", PageUp: ".st-key-lesson-back button" };
  addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
    const button = steps[key] && document.querySelector(steps[key]);
    if (!button || !isPresenting() || ctrlKey || metaKey || altKey || shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    document.activeElement.blur(); // a text box gives its text to the server as it is left
    button.click();
  }, { capture: true });
  addEventListener("keydown", ({ key, target, isComposing, shiftKey }) => {
    const isBox = target.matches?.(".st-key-text textarea, .st-key-sentence-to-add input");
    if (key === "Enter" && isBox && isPresenting() && !isComposing && !shiftKey) setTimeout(() => target.blur());
  });
}
