// One heat map per head: cells on a canvas, token positions along its sides, and the value under the pointer.

const GAP = 20;
const LEAST_MAP = 220;
const LEAST_ON_NARROW = 160;
const NARROW = 560;
const WIDEST_MAP = 560;
const WIDEST_OF_SEVERAL = 360;
const MOST_OBLONG = 4; // maximum ratio of a map's longer side to its shorter side
const TICK_ROOM = 16;
const TICK_SIZE = 11;
const CHARACTER = 6.2;
const LEAST_MARK = 5;

/** Size of a map in pixels, and the space beside it for positions. */
function mapSize(available, nMaps, [nQueries, nKeys]) {
  const least = available < NARROW ? LEAST_ON_NARROW : LEAST_MAP;
  const across = Math.max(1, Math.min(nMaps, Math.floor((available + GAP) / (least + GAP))));
  const whole = Math.min(nMaps > 1 ? WIDEST_OF_SEVERAL : WIDEST_MAP, (available - GAP * (across - 1)) / across);
  const room = Math.ceil(counted(nQueries).length * CHARACTER) + 8;
  const width = Math.floor(whole - room - 2);
  const oblong = Math.min(MOST_OBLONG, Math.max(1 / MOST_OBLONG, nQueries / nKeys));
  return { room, width, height: Math.round(width * oblong) };
}

function renderMaps(view) {
  const { maps, root } = view.elements;
  const { heads, tokens } = view.data;
  view.size = mapSize(root.clientWidth, heads.length, tokens);
  while (maps.children.length > heads.length) maps.lastChild.remove();
  heads.forEach((name, head) => {
    const figure = maps.children[head] ?? maps.appendChild(newMap());
    figure.head = head;
    figure.querySelector("figcaption").textContent = name;
    drawMap(view, figure);
  });
}

function newMap() {
  const figure = newElement("figure", "map");
  const canvas = newElement("canvas");
  canvas.setAttribute("role", "img");
  const marker = newElement("div", "marker");
  marker.hidden = true;
  const frame = newElement("div", "frame");
  frame.append(canvas, marker, newElement("div", "window"));
  figure.append(newElement("figcaption"), frame);
  return figure;
}

function drawMap(view, figure) {
  const { data, size, colors } = view;
  const { room, width, height } = size;
  const canvas = figure.querySelector("canvas");
  const context = clearedCanvas(canvas, room + width + 1, TICK_ROOM + height + 1);
  canvas.style.width = `${room + width + 1}px`;
  canvas.setAttribute("aria-label", mapText(view, figure.head));
  context.save();
  context.translate(room, TICK_ROOM);
  context.beginPath();
  context.rect(0, 0, width, height);
  context.clip();
  if (data.causal) hatch(context, size, colors);
  const [down, across] = blocksOf(data);
  const [cellHeight, cellWidth] = [(height / data.tokens[0]) * data.block[0], (width / data.tokens[1]) * data.block[1]];
  context.imageSmoothingEnabled = Math.min(cellWidth, cellHeight) * (window.devicePixelRatio || 1) < 1;
  context.drawImage(cellImage(view, figure.head), 0, 0, across * cellWidth, down * cellHeight);
  context.restore();
  context.strokeStyle = mixed(colors.background, colors.ink, 0.35);
  context.strokeRect(room - 0.5, TICK_ROOM - 0.5, width + 1, height + 1);
  writePositions(context, view);
}

function blocksOf({ tokens, block }) {
  return tokens.map((count, axis) => Math.ceil(count / block[axis]));
}

function octaveAt(view, head, query, key) {
  const [down, across] = blocksOf(view.data);
  return view.octaves[(head * down + query) * across + key];
}

function cellImage(view, head) {
  const [down, across] = blocksOf(view.data);
  const image = new ImageData(across, down);
  const first = head * down * across;
  for (let cell = 0; cell < down * across; cell++) {
    const octave = view.octaves[first + cell];
    if (Number.isNaN(octave)) continue;
    const shade = 4 * shadeAt(octave, view.top);
    for (let channel = 0; channel < 4; channel++) image.data[cell * 4 + channel] = view.shades[shade + channel];
  }
  return canvasOf(image);
}

/** Hatch the area where no query sees a key, so that it does not look like weak attention. */
function hatch(context, { width, height }, colors) {
  context.strokeStyle = mixed(colors.background, colors.ink, 0.18);
  context.lineWidth = 1;
  context.beginPath();
  for (let start = -height; start < width; start += 7) {
    context.moveTo(start, height);
    context.lineTo(start + height, 0);
  }
  context.stroke();
}

function writePositions(context, { data, size, colors }) {
  const { room, width, height } = size;
  const [nQueries, nKeys] = data.tokens;
  context.font = `${TICK_SIZE}px ${colors.font}`;
  context.fillStyle = colors.ink;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const at of positions(nQueries, height / 28)) {
    context.fillText(counted(at), room - 4, Math.max(TICK_ROOM + 5, TICK_ROOM + (at / nQueries) * height));
  }
  context.textBaseline = "alphabetic";
  for (const at of positions(nKeys, width / (room + 8))) {
    const left = room + (at / nKeys) * width;
    context.textAlign = at === 0 ? "left" : left + room / 2 > room + width ? "right" : "center";
    context.fillText(counted(at), left, TICK_ROOM - 4);
  }
}

/** Round positions, at most about `most` of them. */
function positions(count, most) {
  const rough = count / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? 1;
  const found = [];
  for (let at = 0; at < count; at += step) found.push(at);
  return found;
}

function stretchText([name, start, end]) {
  return `${name} ${counted(start)}${end - start > 1 ? `–${counted(end - 1)}` : ""}`;
}

function cellText(view, head, [query, key]) {
  const { data } = view;
  const [from, to] = [query, key].map((place, axis) => {
    const start = place * data.block[axis];
    return stretchText([data.names[axis], start, Math.min(start + data.block[axis], data.tokens[axis])]);
  });
  const octave = octaveAt(view, head, query, key);
  const value = Number.isNaN(octave) ? "later tokens, not seen" : ratioText(octave);
  return `${data.heads[head]}: ${from} to ${to}: ${value}`;
}

/** Description of a map for screen readers: its strongest cell. */
function mapText(view, head) {
  const [down, across] = blocksOf(view.data);
  const cells = view.octaves.subarray(head * down * across, (head + 1) * down * across);
  let strongest = 0;
  cells.forEach((octave, cell) => {
    if (octave > cells[strongest]) strongest = cell;
  });
  return `Strongest in ${cellText(view, head, [Math.floor(strongest / across), strongest % across])}`;
}

/** Position of the pointer in tokens, also when it has been dragged past the edge of the map. */
function tokenUnder(view, figure, event) {
  const { room, width, height } = view.size;
  const box = figure.querySelector("canvas").getBoundingClientRect();
  const [nQueries, nKeys] = view.data.tokens;
  return [
    ((event.clientY - box.top - TICK_ROOM) / height) * nQueries,
    ((event.clientX - box.left - room) / width) * nKeys,
  ];
}

function isInside(view, place) {
  return place.every((at, axis) => at >= 0 && at < view.data.tokens[axis]);
}

/** Place a marker over a range of tokens; a small one is enlarged. */
function placeMarker(view, marker, starts, lengths) {
  const { room, width, height } = view.size;
  const [top, left] = [height, width].map((pixels, axis) => (starts[axis] / view.data.tokens[axis]) * pixels);
  const [down, across] = [height, width].map((pixels, axis) => (lengths[axis] / view.data.tokens[axis]) * pixels);
  const [tall, wide] = [Math.max(LEAST_MARK, down), Math.max(LEAST_MARK, across)];
  Object.assign(marker.style, {
    width: `${wide}px`,
    height: `${tall}px`,
    transform: `translate(${room + left + (across - wide) / 2}px, ${TICK_ROOM + top + (down - tall) / 2}px)`,
  });
}
