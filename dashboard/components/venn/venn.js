// Two to four outlines with the number of heads in each exact region, and the exact combinations as a table with bars.
const views = new WeakMap();
// Selections by key, kept for when the page discards and rebuilds the elements.
const remembered = new Map();

function draw(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const holds = (code, role) => Boolean((code >> role) & 1);

class OverlapView {
  constructor(parent) {
    const find = (selector) => parent.querySelector(selector);
    this.wrap = find(".wrap");
    this.toolbar = find(".regions");
    this.svg = find("svg");
    this.none = find(".none");
    this.legend = find(".legend");
    this.table = find("table");
    this.toolbar.onkeydown = (event) => this.onKey(event, this.regions);
    this.table.onkeydown = (event) => this.onKey(event, this.rows);
  }

  show(data) {
    this.data = data;
    this.counts = new Map(data.rows.map((row) => [row.code, row]));
    this.regions = [];
    this.rows = [];
    this.frames = new Map();
    this.numbers = new Map();
    this.takeSelection();
    this.wrap.classList.toggle("table-only", data.geometry === null);
    this.wrap.classList.toggle("many", data.looks.length > 4);
    if (data.geometry !== null) this.drawVenn();
    this.drawTable();
    this.paint();
  }

  // Python's value wins if its counter has changed; another one than was kept is sent back at once, because otherwise
  // the browser's own copy of the state would undo it in the next run.
  takeSelection() {
    const { rev, region, key } = this.data;
    const kept = remembered.get(key);
    this.selected = kept && kept.rev === rev ? kept.selected : region;
    remembered.set(key, { rev, selected: this.selected });
    if (kept && kept.selected !== this.selected) later(this, () => this.send(this.namesOf(this.selected)), 0);
  }

  namesOf(code) {
    return code === null ? null : this.data.roles.filter((_, role) => holds(code, role));
  }

  toggle(code) {
    this.selected = this.selected === code ? null : code;
    remembered.set(this.data.key, { rev: this.data.rev, selected: this.selected });
    this.paint();
    this.send(this.namesOf(this.selected));
  }

  paint() {
    for (const { code, element } of [...this.regions, ...this.rows]) {
      element.setAttribute("aria-pressed", String(code === this.selected));
    }
    for (const { code, row } of this.rows) row.classList.toggle("pressed", code === this.selected);
    for (const marks of [this.frames, this.numbers]) {
      for (const [code, mark] of marks) mark.classList.toggle("pressed", code === this.selected);
    }
    for (const buttons of [this.regions, this.rows]) this.setStop(buttons, this.stopOf(buttons));
  }

  // One tab stop for the diagram and one for the table; the arrow keys move within each.
  stopOf(buttons) {
    return buttons.find(({ element }) => element.tabIndex === 0)
      || buttons.find(({ code }) => code === this.selected)
      || buttons[0];
  }

  setStop(buttons, stop) {
    for (const button of buttons) button.element.setAttribute("tabindex", button === stop ? "0" : "-1");
  }

  onKey(event, buttons) {
    const here = buttons.findIndex(({ element }) => element === event.target);
    if (here < 0) return;
    const last = buttons.length - 1;
    let there;
    if (event.key === "ArrowRight" || event.key === "ArrowDown") there = Math.min(here + 1, last);
    else if (event.key === "ArrowLeft" || event.key === "ArrowUp") there = Math.max(here - 1, 0);
    else if (event.key === "Home") there = 0;
    else if (event.key === "End") there = last;
    else if (event.key === "Escape" && this.selected !== null) {
      this.toggle(this.selected);
      return;
    } else if ((event.key === "Enter" || event.key === " ") && event.target.tagName === "path") {
      event.preventDefault();
      this.toggle(buttons[here].code);
      return;
    } else return;
    event.preventDefault();
    this.setStop(buttons, buttons[there]);
    buttons[there].element.focus();
  }

  drawVenn() {
    const { geometry, label } = this.data;
    this.toolbar.setAttribute("aria-label", label);
    const regions = geometry.regions.map((region) => this.drawRegion(region));
    const ellipses = geometry.ellipses.map((path, role) => {
      const ellipse = draw("path", { class: "ellipse", d: path });
      ellipse.style.setProperty("--color", this.data.looks[role].color);
      return ellipse;
    });
    const labels = geometry.labels.map(([x, y], role) => this.drawLabel(x, y, role));
    this.svg.replaceChildren(...regions, ...ellipses, ...this.frames.values(), ...this.numbers.values(), ...labels);
    this.drawNone();
  }

  drawRegion({ code, path, x, y }) {
    const row = this.counts.get(code);
    const region = draw("path", { class: "region", d: path });
    const colors = this.data.looks.filter((_, role) => holds(code, role)).map((look) => look.color);
    const mix = colors.reduce((mixed, color, i) => `color-mix(in oklab, ${mixed} ${(100 * i) / (i + 1)}%, ${color})`);
    region.style.setProperty("--mix", mix);
    region.style.setProperty("--strength", `${16 + 7 * colors.length}%`);
    const number = draw("text", { class: row ? "number" : "number empty", x, y, "aria-hidden": "true" });
    number.textContent = row ? row.heads : 0;
    this.numbers.set(code, number);
    if (row) this.makeButton(region, row, path);
    else region.setAttribute("aria-hidden", "true");
    return region;
  }

  makeButton(region, row, path) {
    const frame = draw("path", { class: "frame", d: path });
    region.setAttribute("role", "button");
    region.setAttribute("aria-label", row.label);
    region.append(draw("title", {}, row.label));
    region.onclick = () => this.toggle(row.code);
    region.onfocus = () => frame.classList.toggle("focused", region.matches(":focus-visible"));
    region.onblur = () => frame.classList.remove("focused");
    this.frames.set(row.code, frame);
    this.regions.push({ code: row.code, element: region });
  }

  drawLabel(x, y, role) {
    const label = draw("text", { class: "label", x, y });
    label.append(draw("tspan", {}, this.data.looks[role].label));
    label.append(draw("tspan", { class: "sum", dx: 10 }, this.data.totals[role]));
    return label;
  }

  drawNone() {
    const row = this.counts.get(0);
    const heads = row ? row.heads : 0;
    this.none.textContent = `${this.data.none}: ${heads} of ${this.data.heads}`;
    this.none.disabled = !row;
    this.none.onclick = () => this.toggle(0);
    if (row) this.regions.push({ code: 0, element: this.none });
  }

  drawTable() {
    const { rows, looks, caption, totals } = this.data;
    const many = looks.length > 4;
    this.legend.replaceChildren(
      ...(many ? looks : []).map((look, role) => {
        const item = newElement("span");
        item.append(roleSwatch(look, "swatch"), `${look.label} ${totals[role]}`);
        return item;
      }),
    );
    const body = newElement("tbody");
    const most = Math.max(1, ...rows.map((row) => row.heads));
    for (const row of rows) body.append(this.tableRow(row, most));
    this.table.replaceChildren(newElement("caption", "", caption), this.tableHead(many), body);
  }

  tableHead(many) {
    const { looks, totals } = this.data;
    const row = newElement("tr");
    looks.forEach((look, role) => {
      const cell = newElement("th", "dot");
      cell.scope = "col";
      if (many) cell.append(roleSwatch(look, "swatch"), newElement("span", "visually-hidden", look.label));
      else cell.append(look.label, newElement("small", "", totals[role]));
      row.append(cell);
    });
    const heads = newElement("th", "", "heads");
    heads.scope = "col";
    row.append(heads);
    const head = newElement("thead");
    head.append(row);
    return head;
  }

  tableRow({ code, heads, name }, most) {
    const row = newElement("tr");
    const held = this.data.looks.map((_, role) => role).filter((role) => holds(code, role));
    const [first, last] = [held[0], held.at(-1)];
    this.data.looks.forEach((look, role) => {
      const cell = newElement("td", "dot");
      const linked = held.length > 1 && role >= first && role <= last;
      cell.classList.toggle("link", linked);
      cell.classList.toggle("first", role === first);
      cell.classList.toggle("last", role === last);
      const here = holds(code, role);
      cell.append(here ? roleSwatch(look, "swatch") : newElement("i"), newElement("span", "visually-hidden", here ? "yes" : "no"));
      row.append(cell);
    });
    const button = newElement("button", "", heads);
    button.type = "button";
    button.setAttribute("aria-label", `${heads} ${heads === 1 ? "head" : "heads"}: ${name}`);
    const bar = newElement("td", "bar");
    const line = newElement("div");
    line.style.setProperty("--share", heads / most);
    line.append(newElement("i"), button);
    bar.append(line);
    row.append(bar);
    row.onclick = () => this.toggle(code);
    this.rows.push({ code, element: button, row });
    return row;
  }
}

export default function ({ data, parentElement, setStateValue }) {
  let view = views.get(parentElement);
  if (!view) views.set(parentElement, (view = new OverlapView(parentElement)));
  view.send = (region) => setStateValue("region", region);
  view.show(dataOf(data));
}
