// Enter applies what is typed into the box of texts, for which Streamlit takes Ctrl+Enter alone; Shift+Enter begins a new
// line. A touch screen's keyboard has no Shift+Enter, so there Enter begins a new line, and a button applies.
addEventListener("keydown", (event) => {
  const { key, target, isComposing, shiftKey, ctrlKey, metaKey, altKey } = event;
  if (key !== "Enter" || isComposing || shiftKey || ctrlKey || metaKey || altKey) return;
  if (!target.matches?.(".st-key-text textarea") || matchMedia("(pointer: coarse)").matches) return;
  event.preventDefault();
  event.stopPropagation();
  target.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: true, bubbles: true, cancelable: true }));
}, { capture: true });
