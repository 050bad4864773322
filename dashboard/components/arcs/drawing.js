// Curves on the two canvases: all links on the base, those of one token on the overlay.

const ALPHA_BUCKETS = 12;
const MOST_PIXELS = 12e6;
const MOST_SIDE = 30000;
const LEAST_CONTRAST = 3;
const HEAD_DASHES = [7, 3]; // tells a head from an earlier one of the same colour

/** Colours of the page as it looks now; heads that would fade into the background are moved towards the text colour. */
function themeColors(element, heads) {
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
    heads: heads.map((head) => distinct(head.color, background, ink)),
    dashed: heads.map((head) => head.dashed),
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

/** A canvas of the given size in page pixels, empty, as sharp as the screen unless it would be too large. */
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

function addCurve(path, frame, query, key) {
  const from = (query + 0.5) * frame.rowHeight;
  const to = (key + 0.5) * frame.rowHeight;
  path.moveTo(0, from);
  path.bezierCurveTo(frame.width * 0.4, from, frame.width * 0.6, to, frame.width, to);
}

/** Draw links with few strokes: one path for each head and step of strength, weak ones first. */
function drawLinks(context, frame, table, links, colors, strong) {
  const paths = Array.from({ length: ALPHA_BUCKETS * table.nHeads });
  for (const at of links) {
    const [head, query, key] = placeOf(table, at);
    const bucket = Math.min(ALPHA_BUCKETS - 1, Math.floor(table.attention[at] * ALPHA_BUCKETS));
    const path = (paths[bucket * table.nHeads + head] ??= new Path2D());
    addCurve(path, frame, query, key);
  }
  paths.forEach((path, number) => {
    if (!path) return;
    const strength = (Math.floor(number / table.nHeads) + 0.6) / ALPHA_BUCKETS;
    const head = number % table.nHeads;
    context.strokeStyle = colors.heads[head];
    context.setLineDash(colors.dashed[head] ? HEAD_DASHES : []);
    context.globalAlpha = strong ? Math.min(1, 0.3 + strength) : Math.min(0.9, 0.08 + strength * 0.9);
    context.lineWidth = strong ? 1.3 + strength * 4 : 0.8 + strength * 2.4;
    context.stroke(path);
  });
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function placeOf(table, at) {
  const key = at % table.nRows;
  const row = (at - key) / table.nRows;
  return [Math.floor(row / table.nRows), row % table.nRows, key];
}

/** The sieve behind all links: one stroke, so that crossing cells do not add up to a dark patch. */
function drawSieveRails(context, frame, table, colors, pair) {
  const path = new Path2D();
  for (let query = 0; query < table.nRows; query++) {
    for (let key = 0; key < table.nRows; key++) {
      if (inSieve(table, query, key) && inPair(table, pair, query, key)) addCurve(path, frame, query, key);
    }
  }
  context.strokeStyle = colors.ink;
  context.globalAlpha = 0.08;
  context.lineWidth = Math.min(9, frame.rowHeight * 0.4);
  context.stroke(path);
  context.globalAlpha = 1;
}

/** The sieve of one token: dashed lines to where a head of the role should look. */
function drawSieveOfRow(context, frame, table, colors, { side, row }, pair) {
  const path = new Path2D();
  for (let other = 0; other < table.nRows; other++) {
    const [query, key] = side === "from" ? [row, other] : [other, row];
    if (inSieve(table, query, key) && inPair(table, pair, query, key)) addCurve(path, frame, query, key);
  }
  context.strokeStyle = colors.ink;
  context.globalAlpha = 0.55;
  context.lineWidth = 1.5;
  context.setLineDash([3, 4]);
  context.stroke(path);
  context.setLineDash([]);
  context.globalAlpha = 1;
}

function inSieve(table, query, key) {
  return table.sieve !== null && table.sieve[query * table.nRows + key] === 1;
}
