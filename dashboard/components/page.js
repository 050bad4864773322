// Helpers for all components: elements, bytes, colours and canvases.

const MOST_PIXELS = 12e6;
const MOST_SIDE = 30000;
const LEAST_CONTRAST = 3;

// Events between views of heads: a grid tells the arcs which head to preview, and the arcs tell their grid that the
// reader wants the next head or layer.
const PREVIEW = "attention-sieve:preview";
const STEP = "attention-sieve:step";

function newElement(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

/** The letter of a role on its colour; legends and names beside it say the same to screen readers. */
function roleSwatch({ letter, color, ink }, className) {
  const swatch = newElement("span", className, letter);
  swatch.style.setProperty("--color", color);
  swatch.style.setProperty("--ink", ink);
  swatch.setAttribute("aria-hidden", "true");
  return swatch;
}

function showSummary(view, text) {
  if (view.elements.summary.textContent !== text) view.elements.summary.textContent = text;
}

/** Announce the summary after a key, a switch or a choice; announcing pointer moves would flood a screen reader. */
function announce(view) {
  view.elements.live.textContent = view.elements.summary.textContent;
}

function percent(part) {
  if (part > 0 && part < 0.01) return "under 1%";
  if (part > 0.99 && part < 1) return "over 99%";
  return `${Math.round(part * 100)}%`;
}

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at); // Uint8Array.from takes 20 times as long
  return bytes;
}

/** Unpack the data packed by `as_text` in `source.py`. */
function dataOf({ text }) {
  return JSON.parse(text);
}

function counted(number) {
  return number.toLocaleString("en");
}

/** Current colours of the page; pens with too little contrast to the background are shifted towards the text colour. */
function themeColors(element, pens) {
  const style = getComputedStyle(element);
  const context = document.createElement("canvas").getContext("2d");
  const hexOf = (color, fallback) => {
    context.fillStyle = fallback;
    context.fillStyle = color;
    return context.fillStyle.startsWith("#") ? context.fillStyle : fallback;
  };
  const background = hexOf(style.getPropertyValue("--st-background-color").trim(), "#ffffff");
  const ink = hexOf(style.color, "#31333f");
  return {
    background,
    ink,
    font: style.fontFamily,
    pens: pens.map(({ color }) => (color === "currentColor" ? ink : distinct(color, background, ink))),
    dashed: pens.map((pen) => pen.dashed),
  };
}

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function mixed(one, two, part) {
  const other = channels(two);
  const sum = channels(one).map((value, at) => Math.round(value * (1 - part) + other[at] * part));
  return `#${sum.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

function luminance(hex) {
  const [red, green, blue] = channels(hex).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, two) {
  const [dark, light] = [luminance(one), luminance(two)].sort((low, high) => low - high);
  return (light + 0.05) / (dark + 0.05);
}

function distinct(color, background, ink) {
  let part = 0;
  while (part < 1 && contrast(mixed(color, ink, part), background) < LEAST_CONTRAST) part += 0.1;
  return mixed(color, ink, Math.min(1, part));
}

/** An image as a canvas, which can be drawn at any size. */
function canvasOf(image) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: image.width, height: image.height });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** Clear a canvas, size it in CSS pixels, return its context; as sharp as the screen unless it would be too large. */
function clearedCanvas(canvas, width, height) {
  const sharp = window.devicePixelRatio || 1;
  const scale = Math.min(sharp, Math.sqrt(MOST_PIXELS / Math.max(1, width * height)), MOST_SIDE / Math.max(1, height));
  const [columns, lines] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== columns || canvas.height !== lines) Object.assign(canvas, { width: columns, height: lines });
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(columns / Math.max(1, width), 0, 0, lines / Math.max(1, height), 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
