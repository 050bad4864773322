// Shows an SVG. It is parsed as XML, never as HTML, and may contain only shapes and text.

const ALLOWED = new Set(["svg", "path", "rect", "text"]);

const listening = new WeakMap();

export default function ({ data, parentElement }) {
  const place = parentElement.querySelector(".drawing");
  place.setAttribute("aria-label", data.label);
  const { documentElement } = new DOMParser().parseFromString(data.svg, "image/svg+xml");
  const elements = [documentElement, ...documentElement.querySelectorAll("*")];
  if (!elements.every((each) => ALLOWED.has(each.localName))) throw new Error("This is no drawing.");
  const before = new Map(barsIn(place).map((bar) => [bar.dataset.bar, bar.getAttribute("width")]));
  place.replaceChildren(document.importNode(documentElement, true));
  const moving = barsIn(place).filter((bar) => before.has(bar.dataset.bar));
  const ends = moving.map((bar) => bar.getAttribute("width"));
  for (const bar of moving) bar.setAttribute("width", before.get(bar.dataset.bar));
  place.getBoundingClientRect(); // drawn as they were, they move to where they end
  for (const [index, bar] of moving.entries()) bar.setAttribute("width", ends[index]);
  fillFields(place, data.frame);
}

/** While a grid previews a head of the same attention, fields show it; then what they showed before. */
function fillFields(place, frame) {
  listening.get(place)?.abort();
  const controller = new AbortController();
  listening.set(place, controller);
  const fields = [...place.querySelectorAll("rect[data-field]")];
  const atFirst = fields.map((field) => field.getAttribute("opacity"));
  const fill = ({ detail: { frame: previewed, head } }) => {
    if (previewed !== frame) return;
    if (!place.isConnected) controller.abort();
    for (const [at, field] of fields.entries()) {
      field.setAttribute("opacity", head ? Math.sqrt(head.attention[at]).toFixed(2) : atFirst[at]);
    }
  };
  if (frame !== null && fields.length) document.addEventListener(PREVIEW, fill, { signal: controller.signal });
}

/** Bars with a name, which are moved when they are drawn again. */
function barsIn(place) {
  return [...place.querySelectorAll("rect[data-bar]")];
}
