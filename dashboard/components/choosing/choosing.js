// Grid of heads to select from: layers down and heads across, or the other way round. Views extend it and define what the cells show:
// read() unpacks the data, parts() returns the number of marks in a cell, drawLegend() and drawCell(cell) draw,
// describe(place) labels a cell for screen readers; tipTitle(place), tipTable(place), tipNotes(place) fill the tooltip.
const grids = new WeakMap();
// Selections by key, kept for when the page discards and rebuilds the elements.
const remembered = new Map();

// Width in pixels; with more space than this to the right of a grid, a picture may be there.
const ROOM = 200;
const HINT = "Click a head to choose it; Shift-click adds one.";

function withRole(element, role) {
  element.setAttribute("role", role);
  return element;
}

/** Legend entry: a swatch and its meaning. */
function legendEntry(swatch, ...text) {
  const item = newElement("span");
  swatch.setAttribute("aria-hidden", "true");
  item.append(swatch, ...text);
  return item;
}

/** Part of a picture that says nothing to a screen reader. */
function hidden(name = "") {
  const part = newElement("span", name);
  part.setAttribute("aria-hidden", "true");
  return part;
}

function floatsOf(base64) {
  return new Float32Array(bytesOf(base64).buffer);
}

const idOf = ([layer, head]) => `${layer}-${head}`;
const atMost = (value, most) => Math.min(Math.max(value, 0), most);

class HeadGrid {
  constructor(parent) {
    const find = (selector) => parent.querySelector(selector);
    this.root = find(".grid");
    this.tip = find(".tip");
    this.legend = find(".legend");
    this.status = find(".chosen");
    this.several = find(".several");
    this.groups = find(".groups");
    this.chosen = [];
    this.active = [0, 0];
    this.cells = new Map();
    this.listen();
  }

  show(data) {
    this.data = data;
    this.read();
    const drawn = JSON.stringify({ ...data, rev: null, chosen: null });
    if (this.drawn !== drawn) {
      this.drawn = drawn;
      this.drawHeads();
    }
    const isWished = this.takeSelection();
    this.paint();
    if (isWished) this.reveal();
    if (this.shownCell) this.showTip(this.shownCell);
  }

  drawHeads() {
    const { shared, sharing } = this.data;
    this.build();
    this.drawLegend();
    if (shared > 1) this.legend.append(legendEntry(newElement("span", "bracket"), sharing));
    for (const cell of this.cells.values()) {
      this.drawCell(cell);
      cell.setAttribute("aria-label", this.describe(cell.place) + this.sharingText(cell.place));
    }
  }

  build() {
    const { layers, heads, label, shared, across } = this.data;
    const [rows, columns] = across ? [heads, layers] : [layers, heads];
    this.root.setAttribute("aria-label", label);
    this.root.setAttribute("aria-multiselectable", "true");
    this.root.style.setProperty("--across", columns);
    this.root.style.setProperty("--down", rows);
    const shape = `${layers} ${heads} ${this.parts()} ${shared} ${across}`;
    if (this.shape === shape) return;
    this.shape = shape;
    this.root.classList.toggle("shared", shared > 1);
    this.root.classList.toggle("across", across);
    this.root.style.setProperty("--groups", heads / shared);
    this.root.style.setProperty("--shared", shared);
    const tracks = [...Array(shared - 1).fill("var(--size)"), "calc(var(--size) + var(--apart))"];
    this.root.style.setProperty("--group", tracks.join(" "));
    this.groups.hidden = shared === 1;
    this.groups.setAttribute("aria-pressed", "false");
    this.hideTip();
    this.cells.clear();
    const top = newElement("div", "heads", across ? "Layer" : "Head");
    top.setAttribute("aria-hidden", "true");
    for (let layer = 0; layer < layers; layer++) {
      for (let head = 0; head < heads; head++) this.cells.set(idOf([layer, head]), this.cellAt([layer, head]));
    }
    const all = Array.from({ length: rows }, (_, row) => this.cellRow(row, columns));
    this.root.replaceChildren(top, this.headerRow(columns), ...all);
    this.root.closest(".wrap").classList.remove("empty");
  }

  headerRow(columns) {
    const { across, shared, heads } = this.data;
    const row = withRole(newElement("div", "row"), "row");
    row.append(withRole(newElement("div", "name side", across ? "Head" : "Layer"), "columnheader"));
    if (across && shared > 1) row.append(hidden("beside"));
    for (let column = 0; column < columns; column++) {
      row.append(withRole(newElement("div", "name", String(column)), "columnheader"));
    }
    if (!across && shared > 1) row.append(hidden("beside"), ...Array.from({ length: heads / shared }, () => hidden("bracket")));
    return row;
  }

  /** The heads that share keys and values with one, itself last. */
  groupOf([layer, head]) {
    const { shared } = this.data;
    const first = head - (head % shared);
    const group = Array.from({ length: shared }, (_, index) => [layer, first + index]);
    return [...group.filter((place) => place[1] !== head), [layer, head]];
  }

  sharingText(place) {
    const names = this.groupOf(place).slice(0, -1).map(([, head]) => `H${head}`);
    return names.length ? ` Shares keys and values with ${names.join(", ")}.` : "";
  }

  cellAt(place) {
    const cell = withRole(newElement("div", "cell"), "gridcell");
    cell.place = place;
    for (let part = 0; part < this.parts(); part++) cell.append(hidden());
    return cell;
  }

  cellRow(number, columns) {
    const { across, shared } = this.data;
    const row = withRole(newElement("div", "row"), "row");
    row.append(withRole(newElement("div", "name side", String(number)), "rowheader"));
    if (across && shared > 1) {
      if (number % shared === 0) row.append(hidden("bracket"));
      row.classList.toggle("last", number % shared === shared - 1);
    }
    for (let column = 0; column < columns; column++) {
      row.append(this.cells.get(idOf(across ? [column, number] : [number, column])));
    }
    return row;
  }

  // Python's value wins if its counter has changed; otherwise the reader's selection is kept. Returns whether the
  // counter is new to this view and any head is selected.
  takeSelection() {
    const { layers, heads, rev, chosen, key } = this.data;
    const kept = remembered.get(key);
    const wanted = kept && kept.rev === rev ? kept.chosen : chosen;
    this.chosen = wanted.filter(([layer, head]) => layer < layers && head < heads);
    remembered.set(key, { rev, chosen: wanted });
    const isWished = this.rev !== rev && this.chosen.length > 0;
    if (isWished) this.active = this.chosen[0];
    this.rev = rev;
    this.active = [atMost(this.active[0], layers - 1), atMost(this.active[1], heads - 1)];
    return isWished;
  }

  // Scroll the grid so that the active cell is in the middle if it was out of view; the page does not scroll.
  reveal() {
    const box = this.root.closest(".scroll");
    const [cell, seen] = [this.cells.get(idOf(this.active)), box].map((each) => each.getBoundingClientRect());
    if (cell.top < seen.top || cell.bottom > seen.bottom) {
      box.scrollTop += (cell.top + cell.bottom - seen.top - seen.bottom) / 2;
    }
    if (cell.left < seen.left || cell.right > seen.right) {
      box.scrollLeft += (cell.left + cell.right - seen.left - seen.right) / 2;
    }
  }

  choose(chosen) {
    this.chosen = chosen;
    const { key, rev } = this.data;
    remembered.set(key, { rev, chosen });
    this.paint();
    this.send({ rev, value: chosen, at: Date.now() });
  }

  pick(place, adds) {
    this.active = place;
    const picked = this.groups.getAttribute("aria-pressed") === "true" ? this.groupOf(place) : [place];
    const ids = new Set(picked.map(idOf));
    const others = this.chosen.filter((each) => !ids.has(idOf(each)));
    if (!adds) this.choose(picked);
    else if (this.chosen.length - others.length === picked.length) this.choose(others);
    else this.choose([...others, ...picked]);
  }

  paint() {
    const chosen = new Set(this.chosen.map(idOf));
    for (const [id, cell] of this.cells) {
      cell.setAttribute("aria-selected", String(chosen.has(id)));
      cell.tabIndex = id === idOf(this.active) ? 0 : -1;
    }
    const chips = this.chosen.map(([layer, head]) => newElement("span", "chip", `L${layer} H${head}`));
    this.status.replaceChildren(...(chips.length ? chips : [newElement("span", "", HINT)]));
  }

  listen() {
    const cellOf = (event) => event.target.closest?.(".cell");
    this.root.onclick = (event) => {
      const cell = cellOf(event);
      if (!cell) return;
      cell.focus({ preventScroll: true });
      const several = this.several.getAttribute("aria-pressed") === "true";
      this.pick(cell.place, several || event.shiftKey || event.ctrlKey || event.metaKey);
      this.hideTip();
      this.clicked = cell;
    };
    // Shift-click would otherwise select text.
    this.root.onmousedown = (event) => event.shiftKey && event.preventDefault();
    this.root.onkeydown = (event) => this.onKey(event);
    const show = (event) => {
      const cell = cellOf(event);
      if (!cell || cell === this.shownCell || cell === this.clicked) return;
      this.clicked = null;
      this.showTip(cell);
    };
    // A tap selects and opens no tooltip: the focus that it causes is not :focus-visible, as focus by keyboard is.
    this.root.onpointerover = (event) => event.pointerType !== "touch" && show(event);
    this.root.onpointerleave = () => {
      this.clicked = null; // until then no tooltip covers what the reader has just chosen
      this.hideTip();
    };
    this.root.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && show(event));
    this.root.addEventListener("focusout", () => this.hideTip());
    for (const button of [this.several, this.groups]) {
      button.onclick = () => {
        button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      };
    }
    this.onScroll = () => this.shownCell && this.placeTip();
    this.onEscape = (event) => {
      if (event.key !== "Escape" || !this.shownCell) return;
      event.stopPropagation();
      this.hideTip();
    };
  }

  onKey(event) {
    const { layers, heads, across } = this.data;
    const [lastRow, lastColumn] = across ? [heads - 1, layers - 1] : [layers - 1, heads - 1];
    let [row, column] = across ? this.active.toReversed() : this.active;
    const far = event.ctrlKey || event.metaKey;
    if (event.key === "ArrowRight") column += 1;
    else if (event.key === "ArrowLeft") column -= 1;
    else if (event.key === "ArrowDown") row += 1;
    else if (event.key === "ArrowUp") row -= 1;
    else if (event.key === "Home") [row, column] = [far ? 0 : row, 0];
    else if (event.key === "End") [row, column] = [far ? lastRow : row, lastColumn];
    else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.pick(this.active, event.shiftKey || far);
      this.hideTip();
      return;
    } else if (event.key === "Escape") {
      if (this.chosen.length) this.choose(this.chosen.length > 1 ? this.chosen.slice(0, 1) : []);
      return;
    } else return;
    event.preventDefault();
    const next = [atMost(row, lastRow), atMost(column, lastColumn)];
    this.active = across ? next.toReversed() : next;
    this.paint();
    this.cells.get(idOf(this.active)).focus();
  }

  showTip(cell) {
    this.shownCell = cell;
    const [layer, head] = cell.place;
    const sentence = this.data.sentences?.[layer][head];
    this.tip.replaceChildren(
      newElement("p", "title", `Layer ${layer}, head ${head}${this.tipTitle(cell.place)}`),
      ...(sentence ? [newElement("p", "sentence", sentence)] : []),
      this.tipTable(cell.place),
      ...this.tipNotes(cell.place),
      ...(this.data.shared > 1 ? [newElement("p", "", this.sharingText(cell.place))] : []),
    );
    if (!this.tip.matches(":popover-open")) {
      this.tip.showPopover();
      window.addEventListener("scroll", this.onScroll, { capture: true, passive: true });
      window.addEventListener("keydown", this.onEscape, true);
    }
    this.placeTip();
  }

  hideTip() {
    this.shownCell = null;
    window.removeEventListener("scroll", this.onScroll, true);
    window.removeEventListener("keydown", this.onEscape, true);
    if (this.tip.matches(":popover-open")) this.tip.hidePopover();
  }

  // Place the tooltip within the grid's column, so that it covers no picture beside it: below the grid, above it, or
  // else over the rows next to the cell. A grid with no space beside it has its picture below, so there the tooltip
  // must not extend below the grid.
  placeTip() {
    const [cell, grid, column] = [this.shownCell, this.root, this.root.closest(".wrap")].map((each) =>
      each.getBoundingClientRect());
    const [right, bottom, gap] = [document.documentElement.clientWidth - 8, window.innerHeight - 8, 10];
    this.tip.style.maxWidth = `${Math.min(column.width, right - 8)}px`;
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const lowest = right - column.right > ROOM ? bottom : Math.min(grid.bottom, bottom);
    const above = cell.top - gap - height;
    const tops = [grid.bottom + gap, grid.top - gap - height, cell.bottom + gap];
    const top = tops.find((each) => each >= 8 && each + height <= lowest) ?? above;
    this.tip.style.left = `${Math.max(8, Math.min(cell.left, column.right - width, right - width))}px`;
    this.tip.style.top = `${Math.max(8, Math.min(top, bottom - height))}px`;
  }
}

/** Show heads in a view of class `View`; the function that a component exports calls it. */
function showHeads(View, { data, parentElement, setStateValue }) {
  let grid = grids.get(parentElement);
  if (!grid) grids.set(parentElement, (grid = new View(parentElement)));
  grid.send = (choice) => setStateValue("chosen", choice);
  grid.show(dataOf(data));
  return () => grid.hideTip();
}
