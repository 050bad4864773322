// The same heads as heat maps: queries as rows, keys as columns, one matrix per head.

const LABEL_ROOM = 84;
const SMALL_LABEL_ROOM = 56;
const MOST_CELL = 24;
const LABEL_SIZE = 11;
const WIDEST_MATRIX = 720;
const LEAST_MATRIX = 300;
const LEAST_LONG_MATRIX = 440;
const MATRIX_GAP = 20;

/** Shade of a weight, in matrices and boxes: the square root makes small weights visible. */
function shadeOf(weight) {
  return Math.sqrt(Math.min(1, Math.abs(weight)));
}

function renderMatrices(view) {
  const { table, elements } = view;
  const heads = visibleHeads(view);
  const size = matrixSize(elements.view.clientWidth, heads.length, Math.max(table.nQueries, table.nKeys));
  const figures = [...elements.matrices.children];
  heads.forEach((head, number) => {
    const figure = figures[number] ?? elements.matrices.appendChild(newMatrixFigure());
    fillMatrixFigure(view, figure, head, size);
  });
  figures.slice(heads.length).forEach((figure) => figure.remove());
}

function matrixSize(available, nMatrices, most) {
  const least = available < NARROW ? available : Math.max(LEAST_MATRIX, Math.min(LEAST_LONG_MATRIX, most * 4));
  const across = Math.max(1, Math.min(nMatrices, Math.floor((available + MATRIX_GAP) / (least + MATRIX_GAP))));
  const width = Math.min(WIDEST_MATRIX, (available - MATRIX_GAP * (across - 1)) / across);
  const room = width < 420 ? SMALL_LABEL_ROOM : LABEL_ROOM;
  const cell = Math.min(MOST_CELL, (width - room - 2) / most);
  return { room, cell: cell >= 3 ? Math.floor(cell) : cell };
}

function newMatrixFigure() {
  const figure = newElement("figure", "matrix");
  const caption = newElement("figcaption");
  const canvas = newElement("canvas");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-roledescription", "attention matrix");
  const marker = newElement("div", "marker");
  marker.hidden = true;
  figure.append(caption, canvas, marker);
  return figure;
}

function fillMatrixFigure(view, figure, head, size) {
  const { table, source, colors } = view;
  const name = source.data.heads[head].name;
  const [caption, canvas, marker] = figure.children;
  const swatch = newElement("i", "swatch");
  swatch.style.setProperty("--head", view.linkColors === colors ? colors.pens[head] : colors.ink);
  swatch.classList.toggle("dashed", colors.dashed[head]);
  caption.replaceChildren(...(table.signed ? [name] : [swatch, name]));
  figure.dataset.head = head;
  marker.hidden = true;
  canvas.setAttribute("aria-label", `${name}: ${table.nQueries} queries by ${table.nKeys} keys; arrow keys read its cells`);
  drawMatrix(view, canvas, head, size);
  figure.matrixSize = size;
}

function drawMatrix(view, canvas, head, { room, cell }) {
  const { table, colors } = view;
  const [across, down] = [cell * table.nKeys, cell * table.nQueries];
  const context = clearedCanvas(canvas, room + across + 1, room + down + 1);
  canvas.style.width = `${room + across + 1}px`;
  context.imageSmoothingEnabled = cell < 1;
  context.drawImage(matrixImage(view, head), room, room, across, down);
  context.strokeStyle = mixed(colors.background, colors.ink, 0.35);
  context.strokeRect(room - 0.5, room - 0.5, across + 1, down + 1);
  if (table.sieve) outlineSieve(context, table, colors, room, cell);
  outlinePin(context, view, room, cell);
  writeMatrixLabels(context, view, room, cell);
}

function matrixImage(view, head) {
  const { table, linkColors: colors, choices } = view;
  const image = new ImageData(table.nKeys, table.nQueries);
  const inks = colors.pens.map(channels);
  for (let query = 0, at = 0; query < table.nQueries; query++) {
    for (let key = 0; key < table.nKeys; key++, at += 4) {
      const weight = inPair(table, choices.pair, query, key) ? weightAt(table, head, query, key) : 0;
      image.data.set([...inks[penOf(table, colors, head, query, key)], Math.round(255 * shadeOf(weight))], at);
    }
  }
  return canvasOf(image);
}

/** Outline the sieve: draw a line wherever a cell inside it borders one outside. */
function outlineSieve(context, table, colors, room, cell) {
  const path = new Path2D();
  const inside = (query, key) => isCell(table, query, key) && inSieve(table, query, key);
  for (let query = 0; query <= table.nQueries; query++) {
    for (let key = 0; key <= table.nKeys; key++) {
      const [x, y] = [room + key * cell, room + query * cell];
      if (inside(query, key) !== inside(query - 1, key)) addLine(path, x, y, x + cell, y);
      if (inside(query, key) !== inside(query, key - 1)) addLine(path, x, y, x, y + cell);
    }
  }
  context.strokeStyle = colors.ink;
  context.lineWidth = cell < 4 ? 0.6 : 1.2;
  context.stroke(path);
}

function isCell({ nQueries, nKeys }, query, key) {
  return query >= 0 && key >= 0 && query < nQueries && key < nKeys;
}

function addLine(path, x1, y1, x2, y2) {
  path.moveTo(x1, y1);
  path.lineTo(x2, y2);
}

function outlinePin(context, view, room, cell) {
  const pin = shownPin(view);
  if (!pin) return;
  const along = view.table.rows[otherSide(pin.side)].length * cell;
  const across = pin.row * cell;
  context.strokeStyle = view.colors.ink;
  context.lineWidth = 2;
  if (pin.side === "from") context.strokeRect(room, room + across, along, cell);
  else context.strokeRect(room + across, room, cell, along);
}

function writeMatrixLabels(context, view, room, cell) {
  const { rows } = view.table;
  const every = Math.ceil((LABEL_SIZE + 1) / cell);
  context.font = `${LABEL_SIZE}px ${view.colors.font}`;
  context.fillStyle = view.colors.ink;
  context.textBaseline = "middle";
  const each = (side, write) => {
    for (let row = 0; row < rows[side].length; row += every) {
      write(fittingLabel(context, rows[side][row].label, room - 8), room + (row + 0.5) * cell);
    }
  };
  context.textAlign = "right";
  each("from", (label, middle) => context.fillText(label, room - 5, middle));
  context.textAlign = "left";
  each("to", (label, middle) => {
    context.save();
    context.translate(middle, room - 5);
    context.rotate(-Math.PI / 2);
    context.fillText(label, 0, 0);
    context.restore();
  });
}

function fittingLabel(context, label, room) {
  if (context.measureText(label).width <= room) return label;
  const characters = [...label.slice(0, 60)];
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > room) characters.pop();
  return `${characters.join("")}…`;
}

function cellUnder(view, figure, event) {
  const { room, cell } = figure.matrixSize;
  const frame = figure.querySelector("canvas").getBoundingClientRect();
  const query = Math.floor((event.clientY - frame.top - room) / cell);
  const key = Math.floor((event.clientX - frame.left - room) / cell);
  return isCell(view.table, query, key) ? { query, key } : null;
}

/** Mark a cell and show its weight in the summary; without a cell, reset both. */
function readCell(view, figure, place) {
  const marker = figure.querySelector(".marker");
  figure.cell = place;
  marker.hidden = !place;
  if (!place) {
    showSummary(view, restingSummary(view));
    return;
  }
  const { room, cell } = figure.matrixSize;
  const canvas = figure.querySelector("canvas");
  const side = Math.max(5, cell);
  Object.assign(marker.style, {
    width: `${side}px`,
    height: `${side}px`,
    left: `${canvas.offsetLeft + room + place.key * cell + (cell - side) / 2}px`,
    top: `${canvas.offsetTop + room + place.query * cell + (cell - side) / 2}px`,
  });
  showSummary(view, cellSummary(view, Number(figure.dataset.head), place));
}

function cellSummary(view, head, { query, key }) {
  const { table, source, choices } = view;
  const words = `${source.data.heads[head].name}: ${quoted(view, "from", query)} to ${quoted(view, "to", key)}`;
  if (!inPair(table, choices.pair, query, key)) return `${words}: outside the chosen segments`;
  const sieve = inSieve(table, query, key) ? `, in the ${source.data.sieve.role} sieve` : "";
  return `${words} ${shownWeight(table, weightAt(table, head, query, key))}${sieve}`;
}

function moveCell(view, figure, key) {
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  if (!(key in steps)) return false;
  const { nQueries, nKeys } = view.table;
  const [down, across] = figure.cell ? steps[key] : [0, 0];
  const { query, key: at } = figure.cell ?? { query: 0, key: 0 };
  const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));
  const place = { query: clamp(query + down, nQueries), key: clamp(at + across, nKeys) };
  readCell(view, figure, place);
  announce(view);
  return true;
}
