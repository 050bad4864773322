// Draws components without Streamlit, through the function by which Streamlit calls them.

/**
 * Prepare an element for a component: markup and styles in a shadow root. `tell(name, value)` takes what the reader
 * changes. Returns `show(data)`, `redraw()` for other colours, and `remove()`.
 */
function mounted({ html, css, run }, host, tell = () => {}) {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet(); // unlike a style element, not subject to a content policy
  sheet.replaceSync(css);
  root.adoptedStyleSheets = [sheet];
  root.innerHTML = html;
  let [shown, leave] = [null, null];
  const redraw = () => {
    if (shown) leave = run({ data: shown, parentElement: root, setStateValue: tell, setTriggerValue: tell });
  };
  const show = (data) => {
    shown = { text: JSON.stringify(data) };
    redraw();
  };
  const remove = () => {
    leave?.();
    shown = null;
    root.replaceChildren();
  };
  return { show, redraw, remove };
}
