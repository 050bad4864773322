// Makes Enter apply the typed text, for which Streamlit accepts only Ctrl+Enter; Shift+Enter starts a new line. The
// keyboard of a touch screen has no Shift+Enter, so there Enter starts a new line, and a button applies the text.
addEventListener("keydown", (event) => {
  const { key, target, isComposing, shiftKey, ctrlKey, metaKey, altKey } = event;
  if (key !== "Enter" || isComposing || shiftKey || ctrlKey || metaKey || altKey) return;
  if (!target.matches?.(":is(.st-key-text, .st-key-swap) textarea") || matchMedia("(pointer: coarse)").matches) return;
  event.preventDefault();
  event.stopPropagation();
  target.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: true, bubbles: true, cancelable: true }));
}, { capture: true });
