// The grid of roles: one corner of a cell per shown role.

function scoreText(value) {
  if (Number.isNaN(value)) return "not applicable";
  if (Math.abs(value) < 0.005) return "0.00"; // not "-0.00"
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

// Format evidence, a natural logarithm, as odds, rounded down, in the same way as core/roles/uncertainty/anytime.py.
function oddsText(value) {
  if (Number.isNaN(value)) return "no bet";
  const number = Math.exp(Math.min(Math.abs(value), 99)) * (1 + 1e-6); // the logarithm has single precision
  let written = String(Math.floor(10 * number) / 10);
  if (number > 1e6) written = "over 1,000,000";
  else if (number >= 10) written = Math.floor(number).toLocaleString("en");
  return value >= 0 ? `${written} : 1` : `1 : ${written}`;
}

/** For each place in a cell, row by row, the corners of the cell that it fills. */
function roundedCorners(rows, columns) {
  const last = columns * (rows - 1);
  const filled = { "start-start": 0, "start-end": columns - 1, "end-start": last, "end-end": last + columns - 1 };
  return Array.from({ length: rows * columns }, (_, place) =>
    Object.keys(filled).filter((corner) => filled[corner] === place).join(" "));
}

const ANY_ROLE = { letter: "x", color: "#6B7280", ink: "#FFFFFF" };
const STEP_RESTS = 300; // milliseconds after the last arrow key until the previewed head is selected

class RoleGrid extends HeadGrid {
  patterns = new Patterns(this);

  constructor(parent) {
    super(parent);
    this.root.closest(".scroll").after(this.legend); // the squares first, then what their marks mean
    this.root.addEventListener("pointerdown", ({ pointerType, target }) => {
      const cell = target.closest(".cell");
      if (pointerType === "touch" && cell) this.patterns.enlarge(cell);
    });
    for (const end of ["pointerup", "pointercancel"]) this.root.addEventListener(end, () => this.patterns.endLens());
  }

  show(data) {
    super.show(data);
    this.patterns.draw();
    this.drawCounts();
  }

  // How often a class chose each head; counts.py says so.
  drawCounts() {
    const counts = window.attentionSieveCounts ?? null;
    if (counts === null && !this.counted) return;
    this.counted = counts !== null;
    for (const cell of this.cells.values()) {
      const count = counts?.[cell.place.join("-")];
      const label = this.describe(cell.place);
      if (count) cell.dataset.count = count;
      else delete cell.dataset.count;
      cell.setAttribute("aria-label", count ? `${label} Chosen by ${count} of the class.` : label);
    }
  }

  read() {
    const { data } = this;
    const { shown, compared, highlight, off, removed } = data;
    this.scores = floatsOf(data.scores);
    this.p = data.p === null ? null : floatsOf(data.p);
    this.uniform = data.uniform === null ? null : floatsOf(data.uniform);
    this.greatest = data.greatest === null ? null : floatsOf(data.greatest);
    this.stays = data.stays === null ? null : bytesOf(data.stays);
    this.states = bytesOf(data.states);
    this.positional = new Set(data.positional);
    this.off = new Set(off.map(idOf));
    this.removed = new Set(removed.map(idOf));
    this.lit = highlight === null ? null : new Set(highlight.map(idOf));
    const columns = Math.ceil(Math.sqrt(shown.length));
    const rows = Math.ceil(shown.length / columns);
    this.rounded = roundedCorners(rows, columns);
    this.areas = shown.map((_, position) => `${Math.floor(position / columns) + 1} / ${(position % columns) + 1}`);
    this.root.classList.toggle("compared", compared);
    this.root.style.setProperty("--gained", data.far ?? 1);
    this.root.style.setProperty("--lost", data.far === null ? 1 : 1 - data.far);
    this.root.style.setProperty("--columns", columns);
    this.root.style.setProperty("--rows", rows);
    this.root.style.setProperty("--least", `${Math.max(24, columns * 9)}px`);
    this.isPatterned = data.patterns !== null || Boolean(data.awaits); // those of a saved page are read later
    const most = `${columns < 3 ? 46 : columns * 17}px`;
    this.root.style.setProperty("--most", this.isPatterned ? "var(--pattern-cell, 64px)" : most);
    this.root.classList.toggle("patterns", this.isPatterned);
    this.legend.classList.toggle("of-patterns", this.isPatterned);
    this.counts = shown.map((role) => this.headsWith(role));
    this.applies = shown.map((role) => !this.scoresOf(role).every(Number.isNaN));
    this.patterns.receive(data.patterns);
  }

  scoresOf(role) {
    return this.scores.subarray(this.index(role, 0, 0), this.index(role + 1, 0, 0));
  }

  // How many heads of the grid have a role now.
  headsWith(role) {
    const { layers, heads } = this.data;
    const states = this.states.subarray(role * layers * heads, (role + 1) * layers * heads);
    return states.reduce((count, state) => count + (state & 1), 0);
  }

  // Whether more than half of the heads have a role: then it is a line at their squares, as a head without it is rarer.
  isCommon(position) {
    return 2 * this.counts[position] > this.nHeads();
  }

  nHeads() {
    return this.data.layers * this.data.heads - this.removed.size;
  }

  parts() {
    return this.data.shown.length;
  }

  // The axes of the arrays are role, layer and head, in that order.
  index(role, layer, head) {
    return (role * this.data.layers + layer) * this.data.heads + head;
  }

  // Mark a syntactic role that the head holds without beating word pairs at the same distance.
  markOf(at) {
    return this.positional.has(at) ? " (positional)" : "";
  }

  // The score of the best possible attention, in words; empty if it is unknown.
  greatestText(role, layer) {
    const greatest = this.greatest?.[role * this.data.layers + layer] ?? NaN;
    return Number.isNaN(greatest) ? "" : ` of at most ${scoreText(greatest)}`;
  }

  pOrOdds(at) {
    return (this.data.odds ? oddsText : pText)(this.p[at]);
  }

  decidedBy(at) {
    return this.data.odds ? `evidence ${oddsText(this.p[at])}` : `p ${pPhrase(this.p[at])}`;
  }

  // State of a head's role: "" or "held"; compared with a reference, "", "kept", "gained" or "lost".
  stateOf(role, layer, head) {
    const state = this.states[this.index(role, layer, head)];
    if (!this.data.compared) return state & 1 ? "held" : "";
    return ["", "gained", "lost", "kept"][state];
  }

  // Whether the state of a head's role could well change with another corpus.
  isFaint(at) {
    return this.stays !== null && this.stays[at] < this.data.certain * this.data.resamples;
  }

  staysText(at) {
    return this.stays === null ? "" : `${Math.floor((100 * this.stays[at]) / this.data.resamples)}%`;
  }

  drawLegend() {
    const { shown, compared, before, faint } = this.data;
    const { isPatterned } = this;
    // Below patterns only what can be seen in them.
    const isNamed = shown.map((_, position) => !isPatterned || this.applies[position]);
    const entries = shown.map((_, position) => this.roleEntry(position)).filter((_, position) => isNamed[position]);
    if (compared) {
      const states = ["gained", "kept", "lost"].map((state) => legendEntry(roleSwatch(ANY_ROLE, `swatch ${state}`), state));
      const all = newElement("span", "states", `${before}:`);
      all.append(...states);
      entries.push(all);
    } else if (!isPatterned && shown.length) {
      entries.push(legendEntry(newElement("span", "swatch ramp"), "no letter: too little to count"));
    }
    if (this.stays !== null) entries.push(legendEntry(roleSwatch(ANY_ROLE, "swatch held faint"), faint));
    this.legend.replaceChildren(...entries, ...this.marksLegend(), ...(isPatterned ? this.patterns.legend() : []));
  }

  // A role with the number of its heads: a letter, a line if most heads have it, hatched if no head could have it.
  roleEntry(position) {
    const role = this.data.shown[position];
    const [count, nHeads, look] = [this.counts[position], this.nHeads(), this.data.roles[role]];
    if (!this.applies[position]) {
      return legendEntry(newElement("span", "swatch missing"), this.nameOf(role), " not applicable");
    }
    if (!this.isCommon(position)) return legendEntry(roleSwatch(look, "swatch held"), this.nameOf(role), ` ${count}`);
    const line = roleSwatch({ ...look, letter: "" }, "swatch line");
    return legendEntry(line, this.nameOf(role, this.data.does[role]), ` (${count} of ${nHeads})`);
  }

  marksLegend() {
    const marks = [[this.off, "off", "switched off"], [this.removed, "removed", "not in this checkpoint"]];
    const shown = marks.filter(([heads]) => heads.size);
    return shown.map(([, mark, says]) => legendEntry(newElement("span", `swatch ${mark}`), says));
  }

  nameOf(role, label = this.data.roles[role].label) {
    const { means, pictures } = this.data;
    return means[role] === null ? label : termElement(label, means[role], pictures[role]);
  }

  drawCell(cell) {
    const id = idOf(cell.place);
    this.drawCorners(cell);
    cell.classList.toggle("off", this.off.has(id));
    cell.classList.toggle("removed", this.removed.has(id));
    cell.classList.toggle("aside", this.lit !== null && !this.lit.has(id));
  }

  drawCorners(cell) {
    const { roles, shown, tau } = this.data;
    shown.forEach((role, position) => {
      const corner = cell.children[position];
      const state = this.stateOf(role, ...cell.place);
      const score = this.scores[this.index(role, ...cell.place)];
      const faint = state && this.isFaint(this.index(role, ...cell.place)) ? "faint" : "";
      const isLine = this.isCommon(position) && !["gained", "lost"].includes(state);
      const isMissing = this.applies[position] && Number.isNaN(score); // of all heads, the legend says it
      const form = isLine ? "line" : isMissing ? "missing" : "";
      corner.style.gridArea = isLine ? "" : this.areas[position];
      corner.className = ["corner", this.rounded[position], state, faint, form].join(" ");
      corner.textContent = state && !isLine ? roles[role].letter : "";
      corner.style.setProperty("--color", roles[role].color);
      corner.style.setProperty("--ink", roles[role].ink);
      corner.style.setProperty("--tint", Number.isNaN(score) ? 0 : atMost(score / tau, 1).toFixed(2));
    });
  }

  describe([layer, head]) {
    if (this.removed.has(idOf([layer, head]))) return `Layer ${layer}, head ${head}: not in this checkpoint.`;
    if (!this.data.roles.length) return `Layer ${layer}, head ${head}: ${this.data.sentences[layer][head]}`;
    const held = [];
    const scores = this.data.roles.map((look, role) => {
      const state = this.stateOf(role, layer, head);
      const at = this.index(role, layer, head);
      const faint = this.isFaint(at) ? [`stays in ${this.staysText(at)} of resamples`] : [];
      const marks = [...(state === "held" ? [] : [state]), ...faint];
      if (state) held.push(look.label + (marks.length ? ` (${marks.join(", ")})` : "") + this.markOf(at));
      const p = this.p === null || Number.isNaN(this.scores[at]) ? "" : ` (${this.decidedBy(at)})`;
      const most = Number.isNaN(this.scores[at]) ? "" : this.greatestText(role, layer);
      return `${look.label} ${scoreText(this.scores[at])}${most}${p}`;
    });
    const off = this.off.has(idOf([layer, head])) ? "switched off, " : "";
    const nouns = `${this.data.noun[0].toUpperCase()}${this.data.noun.slice(1)}s`;
    return `Layer ${layer}, head ${head}: ${off}${held.join(", ") || "no role"}. ${nouns}: ${scores.join(", ")}.`;
  }

  tipTitle([layer, head]) {
    if (this.removed.has(idOf([layer, head]))) return ": not in this checkpoint";
    const { roles } = this.data;
    const held = roles.filter((_, role) => ["held", "gained", "kept"].includes(this.stateOf(role, layer, head)));
    const off = this.off.has(idOf([layer, head])) ? ", switched off" : "";
    return `${off}: ${held.map(({ label }) => label).join(", ") || "no role"}`;
  }

  tipTable([layer, head]) {
    const table = newElement("table");
    if (this.removed.has(idOf([layer, head]))) return table;
    const names = newElement("tr");
    names.append(newElement("th", "", "role"), newElement("th", "", this.data.noun));
    if (this.greatest !== null) names.append(newElement("th", "", "uniform"), newElement("th", "", "at most"));
    if (this.p !== null) names.append(newElement("th", "", this.data.p_name));
    if (this.stays !== null) names.append(newElement("th", "", "stays in"));
    table.createTHead().append(names);
    const body = table.createTBody();
    this.data.roles.forEach((look, role) => {
      if (!this.data.shown.includes(role)) return;
      const state = this.stateOf(role, layer, head);
      const at = this.index(role, layer, head);
      const holds = state !== "" && state !== "lost";
      const row = newElement("tr", holds ? "holds" : "");
      const name = newElement("th");
      const change = this.data.compared && state ? ` (${state})` : "";
      name.append(roleSwatch(look, holds ? "swatch held" : "swatch"), look.label + change + this.markOf(at));
      row.append(name, newElement("td", "", scoreText(this.scores[at])));
      if (this.greatest !== null) {
        const of = [this.uniform, this.greatest].map((references) => references[role * this.data.layers + layer]);
        row.append(...of.map((value) => newElement("td", "", Number.isNaN(value) ? "" : scoreText(value))));
      }
      if (this.p !== null) row.append(newElement("td", "", Number.isNaN(this.scores[at]) ? "" : this.pOrOdds(at)));
      if (this.stays !== null) {
        row.append(newElement("td", "", Number.isNaN(this.scores[at]) ? "" : this.staysText(at)));
      }
      body.append(row);
    });
    return table;
  }

  // If the cells show patterns, the arcs preview the head, because a tooltip would cover the patterns.
  showTip(cell) {
    if (!this.data.patterns) {
      super.showTip(cell);
      return;
    }
    this.shownCell = cell;
    this.patterns.preview(cell.place);
  }

  hideTip() {
    super.hideTip();
    this.patterns.end();
  }

  choose(chosen) {
    this.patterns.hold();
    super.choose(chosen);
    if (this.data.frame !== null && chosen.length) this.makeRoomBelow();
  }

  // If the arcs are below the grid, scroll so that the reader sees them together with the whole grid.
  makeRoomBelow() {
    const wrap = this.root.closest(".wrap");
    const { right, bottom } = wrap.getBoundingClientRect();
    if (document.documentElement.clientWidth - right > ROOM || bottom < window.innerHeight / 2) return;
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    wrap.scrollIntoView({ block: "start", behavior: isStill ? "auto" : "smooth" });
  }

  // Move to the next head or layer for arrow keys pressed in the arcs: preview it at once, select it after a pause.
  step([down, right]) {
    const [layers, heads] = this.data.across ? [right, down] : [down, right];
    const [layer, head] = this.chosen.at(-1) ?? this.active;
    const next = [atMost(layer + layers, this.data.layers - 1), atMost(head + heads, this.data.heads - 1)];
    if (idOf(next) === idOf([layer, head])) return;
    this.active = next;
    this.chosen = [next];
    this.paint();
    this.patterns.preview(next);
    later(this, () => this.choose([next]), STEP_RESTS);
  }

  tipNotes(place) {
    if (this.removed.has(idOf(place))) return [];
    const stays = `Stays in: ${this.data.stable}.`;
    const notes = this.stays === null ? [this.data.filled] : [this.data.filled, stays];
    return notes.map((note) => newElement("p", "", note));
  }
}

export default function (given) {
  const leave = showHeads(RoleGrid, given);
  const grid = grids.get(given.parentElement);
  const step = ({ detail }) => detail.grid === grid.data.key && grid.step(detail.by);
  grid.listening?.abort(); // new data arrive without a cleanup of the old
  grid.listening = new AbortController();
  document.addEventListener(STEP, step, { signal: grid.listening.signal });
  document.addEventListener("attention-sieve:counts", () => grid.drawCounts(), { signal: grid.listening.signal });
  return () => {
    grid.listening.abort();
    leave();
  };
}
