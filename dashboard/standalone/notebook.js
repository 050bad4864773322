// The grid and the arcs of texts in a cell of a notebook, as anywidget draws it: the data are Python's, and what is
// chosen is told to it. Python may be gone: everything is drawn from data that are here.

function render({ model, el }) {
  const host = el.appendChild(document.createElement("div"));
  host.dataset.lmSuppressShortcuts = "true"; // keys pressed here are no shortcuts of JupyterLab
  mounted({ ...CELL, run() {} }, host);
  const find = (selector) => host.shadowRoot.querySelector(selector);
  const [cell, choice, finer, patterns] = [".cell", "select", ".finer", ".patterns"].map(find);
  const texts = JSON.parse(model.get("_data"));
  const tell = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const linked = new LinkedText({ grid: find(".grid"), arcs: find(".arcs"), note: find(".note") }, (heads) => tell("heads", heads));
  const show = () => {
    const { grid, fine, data } = texts[choice.selectedIndex];
    linked.show(finer.checked ? { ...grid, shown: fine } : grid, data, { patterns: patterns.checked });
  };
  const takeHeads = () => {
    if (String(model.get("heads")) !== String(linked.chosen)) linked.choose(model.get("heads"));
  };
  const takeText = () => {
    if (choice.selectedIndex === model.get("text")) return;
    choice.selectedIndex = model.get("text");
    show();
  };
  choice.append(...texts.map(({ name }) => new Option(name)));
  choice.selectedIndex = model.get("text");
  find(".texts").hidden = texts.length === 1;
  choice.onchange = () => {
    show();
    tell("text", choice.selectedIndex);
  };
  finer.onchange = patterns.onchange = show;
  // A still stands in the notebook for readers without the widget; it may come later than the widget.
  const hiding = document.head.appendChild(document.createElement("style"));
  hiding.textContent = `[data-still="${model.get("_still")}"] { display: none }`;
  const unfollow = followColors(host, cell, () => linked.redraw());
  linked.chosen = model.get("heads");
  show();
  model.on("change:heads", takeHeads);
  model.on("change:text", takeText);
  return () => {
    unfollow();
    hiding.remove();
    model.off("change:heads", takeHeads);
    model.off("change:text", takeText);
    linked.remove();
  };
}

/**
 * Take the colours of the notebook around a host, and again whenever they change: light or dark by the text in it, which
 * has a colour in every notebook, and its background where it has one. A host that is not yet in the page has no colours.
 */
function followColors(host, cell, redraw) {
  let taken = null;
  const take = () => {
    if (!host.isConnected) return;
    const isDark = brightness(pixelOf(getComputedStyle(host).color)) > 0.5;
    const background = backgroundOf(host);
    if (taken === `${isDark} ${background}`) return;
    taken = `${isDark} ${background}`;
    cell.classList.toggle("dark", isDark);
    cell.style.setProperty("--st-background-color", background); // null takes it away
    redraw();
  };
  const soon = () => requestAnimationFrame(take);
  const watch = new MutationObserver(soon);
  for (const element of [document.documentElement, document.body]) watch.observe(element, { attributes: true });
  const sizes = new ResizeObserver(take);
  sizes.observe(host);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", soon);
  return () => {
    watch.disconnect();
    sizes.disconnect();
    scheme.removeEventListener("change", soon);
  };
}

/** The background that is seen behind an element; null where nothing around it has one. */
function backgroundOf(element) {
  for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) {
    const [red, green, blue, alpha] = pixelOf(getComputedStyle(at).backgroundColor);
    if (alpha === 255) return `rgb(${red} ${green} ${blue})`;
  }
  return null;
}

/** Red, green, blue and alpha of a colour, from 0 to 255, in whatever notation. */
function pixelOf(color) {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data;
}

function brightness([red, green, blue]) {
  return (0.299 * red + 0.587 * green + 0.114 * blue) / 255;
}

export default { render };
