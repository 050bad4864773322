// A term that opens its explanation when hovered, focused or tapped: a sentence, and a picture if there is one.

const PICTURE = { widest: 256, cell: [4, 12], leastForNames: 8, names: 78 }; // pixels
const OF_WINDOW = 0.45; // maximum size of a picture, as a share of the viewport height
let nTerms = 0;

/** The term as a button, and its explanation; `picture` is as `picture` in `grid/__init__.py` packs it. */
function termElement(word, means, picture = null) {
  const whole = newElement("span", "explained");
  const button = Object.assign(newElement("button", "term", word), { type: "button" });
  const meaning = Object.assign(newElement("span", "meaning", means), { id: `meaning-${nTerms++}`, popover: "manual" });
  meaning.setAttribute("role", "tooltip");
  button.setAttribute("aria-describedby", meaning.id);
  let listening = null;
  const close = () => {
    listening?.abort();
    listening = null;
    if (meaning.matches(":popover-open")) meaning.hidePopover();
  };
  const open = () => {
    if (listening) return;
    listening = new AbortController();
    const { signal } = listening;
    if (picture) meaning.replaceChildren(means, ...pictureOf(picture, whole));
    meaning.showPopover();
    placeBelow(button, meaning);
    const { top } = button.getBoundingClientRect();
    // Keyboard focus scrolls a term into view, so its explanation moves with it; with a pointer, a term that moves
    // leaves the pointer, so it closes. A scroll event may arrive late, after the pointer has entered a term at rest.
    const move = () => {
      if (button.matches(":focus-visible")) placeBelow(button, meaning);
      else if (button.getBoundingClientRect().top !== top) close();
    };
    window.addEventListener("scroll", move, { capture: true, passive: true, signal });
    window.addEventListener("keydown", (event) => event.key === "Escape" && close(), { capture: true, signal });
    window.addEventListener("pointerdown", (event) => event.composedPath().includes(whole) || close(), { signal });
  };
  whole.append(button, meaning);
  whole.onpointerenter = open;
  whole.onpointerleave = close;
  button.onfocus = open;
  button.onblur = close;
  button.onclick = open;
  return whole;
}

/** Place it below the term, touching it so that the pointer can move there, or else above; always in the viewport. */
function placeBelow(button, meaning) {
  const word = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = meaning;
  const [right, bottom] = [document.documentElement.clientWidth - 8, window.innerHeight - 8];
  const isBelow = word.bottom + height <= bottom || word.top - height < 8;
  meaning.style.left = `${Math.max(8, Math.min(word.left, right - width))}px`;
  meaning.style.top = `${Math.max(8, isBelow ? Math.min(word.bottom, bottom - height) : word.top - height)}px`;
}

/** Picture of a sieve on the reader's tokens, with a caption that explains its rows and cells. */
function pictureOf({ tokens, keys, cells, color, caption }, element) {
  const canvas = newElement("canvas");
  const [least, most] = PICTURE.cell;
  const room = Math.min(PICTURE.widest, window.innerHeight * OF_WINDOW);
  const size = Math.min(most, Math.max(least, Math.floor(room / Math.max(keys, tokens.length))));
  const margin = size < PICTURE.leastForNames ? 0 : PICTURE.names;
  const [width, height] = [margin + keys * size, tokens.length * size];
  canvas.style.width = `${width}px`;
  const context = clearedCanvas(canvas, width, height);
  const bytes = bytesOf(cells);
  context.fillStyle = getComputedStyle(element).color;
  Object.assign(context, { font: `${size + 1}px ${getComputedStyle(element).fontFamily}`, textAlign: "right" });
  context.textBaseline = "middle";
  tokens.forEach((token, row) => {
    context.globalAlpha = 1;
    if (margin) context.fillText(token, margin - 5, (row + 0.5) * size, margin - 5);
  });
  const isInside = (at) => (bytes[at >> 3] >> (7 - (at & 7))) & 1;
  for (let at = 0; at < tokens.length * keys; at++) {
    const [column, row] = [at % keys, Math.floor(at / keys)];
    context.globalAlpha = isInside(at) ? 1 : 0.1;
    if (isInside(at)) context.fillStyle = color;
    else context.fillStyle = getComputedStyle(element).color;
    context.fillRect(margin + column * size, row * size, size - 1, size - 1);
  }
  canvas.setAttribute("aria-hidden", "true");
  return [canvas, newElement("span", "about-picture", caption)];
}
