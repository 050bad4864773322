// The grid of heads beside the arcs of those that are chosen in it. In the dashboard Python sends the attention of the
// chosen heads; here it is cut from the patterns of all heads, which hold every weight.

const MOST_DRAWN = 12; // heads in one view of arcs
const CHUNK = 1 << 15;

class LinkedText {
  /**
   * `hosts` are elements: `grid`, `arcs`, and `note` for a sentence where fewer heads are drawn than are chosen.
   * `onChosen(heads)` is called when the reader has chosen heads. Views of one `group` highlight and scroll together.
   */
  constructor(hosts, onChosen = () => {}, group = null) {
    this.hosts = hosts;
    this.group = group;
    this.onChosen = onChosen;
    this.key = `linked ${Math.random()}`; // in a notebook, each cell has a script of its own
    this.rev = 1;
    this.chosen = [];
    this.sieve = "";
    this.grid = mounted(components.role_grid, hosts.grid, (_, choice) => {
      this.chosen = choice.value;
      this.drawArcs();
      this.onChosen(this.chosen);
    });
    this.arcs = mounted(components.arcs, hosts.arcs, (name, look) => {
      if (name !== "look" || (look.sieve ?? "") === this.sieve) return;
      this.sieve = look.sieve ?? "";
      this.drawArcs();
    });
  }

  /**
   * Draw a text: `grid`, and what `text_data` in linked_text.py gives, if that is there yet. Cells show roles, or the
   * patterns of the text.
   */
  show(grid, text, { patterns }) {
    const cells = text === this.text ? this.cells : null;
    Object.assign(this, { shown: grid, text, patterns, cells });
    this.drawGrid();
    if (cells || !text) return;
    afterPaint(() => {
      if (this.text !== text) return; // another text, or none, is shown by now
      this.cells = bytesOf(text.patterns.cells);
      this.drawArcs();
    });
  }

  /** Choose heads from outside. */
  choose(heads) {
    this.chosen = heads;
    this.rev++;
    this.drawGrid();
    this.drawArcs();
  }

  redraw() {
    this.grid.redraw();
    this.arcs.redraw();
  }

  remove() {
    this.text = null;
    this.grid.remove();
    this.arcs.remove();
  }

  drawGrid() {
    const { key, rev, chosen, text } = this;
    const patterns = (this.patterns && text?.patterns) || null;
    this.grid.show({ ...this.shown, frame: key, patterns, awaits: this.patterns, key, rev, chosen });
  }

  drawArcs() {
    const heads = this.chosen.slice(-MOST_DRAWN);
    if (!this.cells) return;
    this.hosts.arcs.hidden = !heads.length;
    this.hosts.note.textContent = this.noteOn(heads);
    if (heads.length) this.arcs.show(this.arcsOf(heads));
  }

  noteOn(heads) {
    if (!heads.length) return "Click a head in the grid to see where it looks.";
    return heads.length < this.chosen.length ? `The last ${heads.length} of ${this.chosen.length} chosen heads are drawn.` : "";
  }

  arcsOf(heads) {
    const { text, shown } = this;
    const size = text.patterns.queries * text.patterns.keys;
    const ofHeads = (all, each) => {
      const bytes = new Uint8Array(heads.length * each);
      heads.forEach(([layer, head], at) => {
        const start = (layer * shown.heads + head) * each;
        bytes.set(all.subarray(start, start + each), at * each);
      });
      return bytes;
    };
    const bytes = ofHeads(this.cells, size);
    const named = heads.map(([layer, head], at) => ({
      name: `L${layer} H${head}`,
      color: shown.colors[at % shown.colors.length],
      dashed: at >= shown.colors.length,
    }));
    const sieve = text.sieves[this.sieve];
    return {
      ...text.arcs,
      grid: this.key,
      frame: this.key,
      group: this.group,
      heads: named,
      label: `Attention of ${named.map(({ name }) => name).join(", ")} ${text.arcs.label}`,
      attention: toBase64(bytes),
      sieve: sieve ? { ...sieve, inside: heads.map((_, at) => shareInside(sieve, bytes.subarray(at * size), text)) } : null,
      look: {},
      looks: 1,
      tells: true,
      inside: text.inside && toBase64(ofHeads(bytesOf(text.inside), 2 * text.patterns.queries)),
    };
  }
}

/** Let the browser draw what is there before it goes on: of a long text, arcs take longer than the grid. */
function afterPaint(act) {
  requestAnimationFrame(() => setTimeout(act));
}

function toBase64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(text);
}

/** Share of a head's attention in a sieve: the mean over the queries that have a sieve. */
function shareInside({ cells, queries }, steps, { patterns }) {
  const packed = bytesOf(cells);
  let sum = 0;
  for (let query = 0; query < patterns.queries; query++) {
    let [inside, whole] = [0, 0];
    for (let at = query * patterns.keys; at < (query + 1) * patterns.keys; at++) {
      const weight = (steps[at] / 255) ** 2;
      whole += weight;
      if ((packed[at >> 3] >> (7 - (at & 7))) & 1) inside += weight;
    }
    if (whole) sum += inside / whole;
  }
  return queries ? sum / queries : 0;
}
