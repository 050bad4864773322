// The grid of roles: layers down, heads across, one corner per shown role.
const grids = new WeakMap();
// What was chosen under a key, for when the page throws the elements away and builds them again.
const remembered = new Map();

const HINT = "Click a head to choose it; Shift-click adds one.";

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function withRole(element, role) {
  element.setAttribute("role", role);
  return element;
}

function bytes(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

function floats(base64) {
  return new Float32Array(bytes(base64).buffer);
}

function scoreText(value) {
  if (Number.isNaN(value)) return "not applicable";
  return value >= 1000 ? value.toExponential(2) : value.toFixed(2);
}

function pText(value) {
  if (Number.isNaN(value)) return "no test";
  return value < 0.001 ? "< 0.001" : value.toFixed(3);
}

function pPhrase(value) {
  const text = pText(value);
  return text.startsWith("<") || text === "no test" ? text : `= ${text}`;
}

const idOf = ([layer, head]) => `${layer}-${head}`;
const atMost = (value, most) => Math.min(Math.max(value, 0), most);

class RoleGrid {
  constructor(parent) {
    this.parent = parent;
    const find = (selector) => parent.querySelector(selector);
    this.root = find(".grid");
    this.tip = find(".tip");
    this.legend = find(".legend");
    this.status = find(".chosen");
    this.several = find(".several");
    this.chosen = [];
    this.active = [0, 0];
    this.cells = new Map();
    this.listen();
  }

  show(data) {
    this.data = data;
    this.scores = floats(data.scores);
    this.p = data.p === null ? null : floats(data.p);
    this.states = bytes(data.states);
    this.build();
    this.drawLegend();
    this.drawCells();
    this.takeSelection();
    this.paint();
    if (this.shownCell) this.showTip(this.shownCell);
  }

  // The arrays run over role, layer and head, in that order.
  index(role, layer, head) {
    return (role * this.data.layers + layer) * this.data.heads + head;
  }

  // What a role is to a head: "", "held", or with an earlier checkpoint "kept", "gained", "lost".
  stateOf(role, layer, head) {
    const state = this.states[this.index(role, layer, head)];
    if (!this.data.compared) return state & 1 ? "held" : "";
    return ["", "gained", "lost", "kept"][state];
  }

  build() {
    const { layers, heads, shown, label, compared } = this.data;
    const columns = Math.ceil(Math.sqrt(shown.length));
    this.root.setAttribute("aria-label", label);
    this.root.setAttribute("aria-multiselectable", "true");
    this.root.classList.toggle("compared", compared);
    this.root.style.setProperty("--heads", heads);
    this.root.style.setProperty("--columns", columns);
    this.root.style.setProperty("--rows", Math.ceil(shown.length / columns));
    this.root.style.setProperty("--least", `${Math.max(24, columns * 12)}px`);
    this.root.style.setProperty("--most", `${columns < 3 ? 46 : columns * 17}px`);
    const shape = `${layers} ${heads} ${shown.length}`;
    if (this.shape === shape) return;
    this.shape = shape;
    this.hideTip();
    this.cells.clear();
    const top = make("div", "heads", "Head");
    top.setAttribute("aria-hidden", "true");
    const rows = [this.headerRow(heads)];
    for (let layer = 0; layer < layers; layer++) rows.push(this.cellRow(layer, heads, shown.length));
    this.root.replaceChildren(top, ...rows);
  }

  headerRow(heads) {
    const row = withRole(make("div", "row"), "row");
    row.append(withRole(make("div", "name side", "Layer"), "columnheader"));
    for (let head = 0; head < heads; head++) {
      row.append(withRole(make("div", "name", String(head)), "columnheader"));
    }
    return row;
  }

  cellRow(layer, heads, corners) {
    const row = withRole(make("div", "row"), "row");
    row.append(withRole(make("div", "name side", String(layer)), "rowheader"));
    for (let head = 0; head < heads; head++) {
      const cell = withRole(make("div", "cell"), "gridcell");
      cell.place = [layer, head];
      for (let corner = 0; corner < corners; corner++) cell.append(make("span", "corner"));
      for (const corner of cell.children) corner.setAttribute("aria-hidden", "true");
      this.cells.set(idOf(cell.place), cell);
      row.append(cell);
    }
    return row;
  }

  drawLegend() {
    const { roles, shown, compared, tau, before, off } = this.data;
    const entry = (swatch, text) => {
      const item = make("span");
      swatch.setAttribute("aria-hidden", "true");
      item.append(swatch, text);
      return item;
    };
    const entries = shown.map((role) => entry(this.swatch(roles[role], "held"), roles[role].label));
    if (compared) {
      const states = ["gained", "kept", "lost"].map((state) =>
        entry(this.swatch({ letter: "x", color: "#6B7280", ink: "#FFFFFF" }, state), state));
      const all = make("span", "states", `${before}:`);
      all.append(...states);
      entries.push(all);
    } else {
      entries.push(entry(make("span", "swatch ramp"), `not held: score 0 to ${tau}`));
    }
    if (off.length) entries.push(entry(make("span", "swatch off"), "switched off"));
    this.legend.replaceChildren(...entries);
  }

  swatch(look, state) {
    const swatch = make("span", `swatch ${state}`, look.letter);
    swatch.style.setProperty("--color", look.color);
    swatch.style.setProperty("--ink", look.ink);
    return swatch;
  }

  drawCells() {
    const { highlight, off } = this.data;
    const lit = highlight === null ? null : new Set(highlight.map(idOf));
    this.off = new Set(off.map(idOf));
    for (const [id, cell] of this.cells) {
      this.drawCorners(cell);
      cell.classList.toggle("off", this.off.has(id));
      cell.classList.toggle("aside", lit !== null && !lit.has(id));
      cell.setAttribute("aria-label", this.describe(cell.place));
    }
  }

  drawCorners(cell) {
    const { roles, shown, tau } = this.data;
    shown.forEach((role, position) => {
      const corner = cell.children[position];
      const state = this.stateOf(role, ...cell.place);
      const score = this.scores[this.index(role, ...cell.place)];
      corner.className = `corner ${state}`;
      corner.textContent = state ? roles[role].letter : "";
      corner.style.setProperty("--color", roles[role].color);
      corner.style.setProperty("--ink", roles[role].ink);
      corner.style.setProperty("--tint", Number.isNaN(score) ? 0 : atMost(score / tau, 1).toFixed(2));
    });
  }

  describe([layer, head]) {
    const held = [];
    const scores = this.data.roles.map((look, role) => {
      const state = this.stateOf(role, layer, head);
      if (state) held.push(state === "held" ? look.label : `${look.label} (${state})`);
      const at = this.index(role, layer, head);
      const p = this.p === null || Number.isNaN(this.scores[at]) ? "" : ` (p ${pPhrase(this.p[at])})`;
      return `${look.label} ${scoreText(this.scores[at])}${p}`;
    });
    const off = this.off.has(idOf([layer, head])) ? "switched off, " : "";
    return `Layer ${layer}, head ${head}: ${off}${held.join(", ") || "no role"}. Scores: ${scores.join(", ")}.`;
  }

  // Python's wish wins when its counter has moved; otherwise what the reader chose stays. A wish is sent back at once,
  // because the browser's own copy of the state would undo it with the next run.
  takeSelection() {
    const { layers, heads, rev, chosen, key } = this.data;
    const kept = remembered.get(key);
    const wanted = kept && kept.rev === rev ? kept.chosen : chosen;
    this.chosen = wanted.filter(([layer, head]) => layer < layers && head < heads);
    remembered.set(key, { rev, chosen: wanted });
    if (kept && kept.rev !== rev) this.send(wanted);
    if (this.rev !== rev && this.chosen.length) this.active = this.chosen[0];
    this.rev = rev;
    this.active = [atMost(this.active[0], layers - 1), atMost(this.active[1], heads - 1)];
  }

  choose(chosen) {
    this.chosen = chosen;
    remembered.set(this.data.key, { rev: this.data.rev, chosen });
    this.paint();
    this.send(chosen);
  }

  pick(place, adds) {
    this.active = place;
    const others = this.chosen.filter((each) => idOf(each) !== idOf(place));
    if (!adds) this.choose([place]);
    else if (others.length < this.chosen.length) this.choose(others);
    else this.choose([...others, place]);
  }

  ring(order) {
    const { colors } = this.data;
    return this.chosen.length > 1 ? colors[order % colors.length] : "var(--st-text-color)";
  }

  paint() {
    const orders = new Map(this.chosen.map((place, order) => [idOf(place), order]));
    for (const [id, cell] of this.cells) {
      cell.setAttribute("aria-selected", String(orders.has(id)));
      cell.tabIndex = id === idOf(this.active) ? 0 : -1;
      if (orders.has(id)) cell.style.setProperty("--ring", this.ring(orders.get(id)));
    }
    const chips = this.chosen.map(([layer, head], order) => {
      const chip = make("span", "chip");
      chip.style.setProperty("--ring", this.ring(order));
      const frame = make("i");
      frame.setAttribute("aria-hidden", "true");
      chip.append(frame, `L${layer} H${head}`);
      return chip;
    });
    this.status.replaceChildren(...(chips.length ? chips : [make("span", "", HINT)]));
  }

  listen() {
    const cellOf = (event) => event.target.closest?.(".cell");
    this.root.onclick = (event) => {
      const cell = cellOf(event);
      if (!cell) return;
      cell.focus({ preventScroll: true });
      const several = this.several.getAttribute("aria-pressed") === "true";
      this.pick(cell.place, several || event.shiftKey || event.ctrlKey || event.metaKey);
    };
    // Shift-click would otherwise mark text.
    this.root.onmousedown = (event) => event.shiftKey && event.preventDefault();
    this.root.onkeydown = (event) => this.onKey(event);
    const show = (event) => {
      const cell = cellOf(event);
      if (cell && cell !== this.shownCell) this.showTip(cell);
    };
    this.root.onpointerover = show;
    this.root.onpointerleave = () => this.hideTip();
    this.root.addEventListener("focusin", show);
    this.root.addEventListener("focusout", () => this.hideTip());
    this.several.onclick = () => {
      const pressed = this.several.getAttribute("aria-pressed") === "true";
      this.several.setAttribute("aria-pressed", String(!pressed));
    };
    this.onScroll = () => this.shownCell && this.placeTip();
    this.onEscape = (event) => {
      if (event.key !== "Escape" || !this.shownCell) return;
      event.stopPropagation();
      this.hideTip();
    };
  }

  onKey(event) {
    const { layers, heads } = this.data;
    let [layer, head] = this.active;
    const far = event.ctrlKey || event.metaKey;
    if (event.key === "ArrowRight") head += 1;
    else if (event.key === "ArrowLeft") head -= 1;
    else if (event.key === "ArrowDown") layer += 1;
    else if (event.key === "ArrowUp") layer -= 1;
    else if (event.key === "Home") [layer, head] = [far ? 0 : layer, 0];
    else if (event.key === "End") [layer, head] = [far ? layers - 1 : layer, heads - 1];
    else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.pick(this.active, event.shiftKey || far);
      return;
    } else if (event.key === "Escape") {
      if (this.chosen.length) this.choose(this.chosen.length > 1 ? this.chosen.slice(0, 1) : []);
      return;
    } else return;
    event.preventDefault();
    this.active = [atMost(layer, layers - 1), atMost(head, heads - 1)];
    this.paint();
    this.cells.get(idOf(this.active)).focus();
  }

  showTip(cell) {
    this.shownCell = cell;
    this.tip.replaceChildren(this.tipTable(cell.place), ...this.tipNotes());
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

  tipTable([layer, head]) {
    const table = make("table");
    const off = this.off.has(idOf([layer, head])) ? ", switched off" : "";
    table.append(make("caption", "", `Layer ${layer}, head ${head}${off}`));
    const names = make("tr");
    names.append(make("th", "", "role"), make("th", "", "score"));
    if (this.p !== null) names.append(make("th", "", this.data.p_name));
    table.createTHead().append(names);
    const body = table.createTBody();
    this.data.roles.forEach((look, role) => {
      const state = this.stateOf(role, layer, head);
      const at = this.index(role, layer, head);
      const holds = state !== "" && state !== "lost";
      const row = make("tr", holds ? "holds" : "");
      const name = make("th");
      name.append(this.swatch(look, holds ? "held" : ""), look.label + (this.data.compared && state ? ` (${state})` : ""));
      row.append(name, make("td", "", scoreText(this.scores[at])));
      if (this.p !== null) row.append(make("td", "", Number.isNaN(this.scores[at]) ? "" : pText(this.p[at])));
      body.append(row);
    });
    return table;
  }

  tipNotes() {
    return [make("p", "", this.data.filled)];
  }

  // Beside the cell where there is room, else below or above it, and always inside the window.
  placeTip() {
    const cell = this.shownCell.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const [right, bottom] = [document.documentElement.clientWidth - 8, window.innerHeight - 8];
    const gap = 10;
    let [x, y] = [cell.right + gap, cell.top];
    if (x + width > right) x = cell.left - gap - width;
    if (x < 8) {
      x = cell.left;
      y = cell.bottom + gap;
      if (y + height > bottom) y = cell.top - gap - height;
    }
    this.tip.style.left = `${Math.max(8, Math.min(x, right - width))}px`;
    this.tip.style.top = `${Math.max(8, Math.min(y, bottom - height))}px`;
  }
}

export default function ({ data, parentElement, setStateValue }) {
  let grid = grids.get(parentElement);
  if (!grid) grids.set(parentElement, (grid = new RoleGrid(parentElement)));
  grid.send = (chosen) => setStateValue("chosen", chosen);
  grid.show(data);
  return () => grid.hideTip();
}
