// Patterns of all heads in the text on screen, drawn on one canvas behind the cells and previewed in the arcs.

const READ = [
  "Each square is a head, one of the model’s ways of looking at your text.",
  "Down: the token that looks. Across: the token it looks at. The stronger a dot, the more attention.",
  "Point at a square, or go there with the arrow keys, to see the head’s arcs; click it or press Enter to choose it.",
].join(" ");
const POOLED = "There are more tokens than dots: each dot shows the strongest link in its block.";

const FINGER = 24; // pixels between a square that is touched and its enlargement

class Patterns {
  constructor(grid) {
    this.grid = grid;
    this.canvas = newElement("canvas", "drawn");
    this.canvas.setAttribute("aria-hidden", "true");
    this.sizes = new ResizeObserver(() => this.draw());
    this.shown = null;
    this.lens = newElement("canvas", "lens");
    this.lens.popover = "manual";
    this.lens.setAttribute("aria-hidden", "true");
  }

  /** Show a square large, above the finger that touches it. */
  enlarge(cell) {
    if (!this.data) return;
    const { root } = this.grid;
    const [layer, head] = cell.place;
    const [down, across] = this.data.shape;
    const start = (layer * this.grid.data.heads + head) * down * across;
    if (!this.lens.isConnected) root.append(this.lens);
    [this.lens.width, this.lens.height] = [across, down];
    const [context, [red, green, blue]] = [this.lens.getContext("2d"), channels(themeColors(root, []).ink)];
    const image = context.createImageData(across, down);
    const ink = (blue << 16) | (green << 8) | red;
    new Uint32Array(image.data.buffer).set(Array.from(this.cells.subarray(start, start + down * across), (share) => (share << 24) | ink));
    context.putImageData(image, 0, 0);
    this.lens.showPopover();
    const [box, { offsetWidth: width, offsetHeight: height }] = [cell.getBoundingClientRect(), this.lens];
    const above = box.top - height - FINGER;
    this.lens.style.left = `${atMost(box.left + (box.width - width) / 2, innerWidth - width)}px`;
    this.lens.style.top = `${above < 0 ? box.bottom + FINGER : above}px`;
  }

  endLens() {
    if (this.lens.matches(":popover-open")) this.lens.hidePopover();
  }

  /** Take the data sent by Python; null if the cells show something else. */
  receive(data) {
    if (data?.cells !== this.data?.cells) this.drawn = null;
    this.data = data;
    if (data) {
      this.cells = this.drawn ? this.cells : bytesOf(data.cells);
      this.links = data.links && { keys: new Uint16Array(bytesOf(data.links.keys).buffer), weights: bytesOf(data.links.weights) };
      this.sizes.observe(this.grid.root);
    } else {
      this.sizes.disconnect();
      this.canvas.remove();
      this.end();
    }
  }

  /** Draw all heads, unless they are already drawn in the same size and colour. */
  draw() {
    const { root, cells } = this.grid;
    if (!this.data || !root.isConnected) return;
    if (this.canvas.parentElement !== root) root.prepend(this.canvas);
    const first = cells.values().next().value;
    const { layers, heads } = this.grid.data;
    const sizes = [root.clientWidth, root.clientHeight, first.clientWidth, window.devicePixelRatio];
    const asked = JSON.stringify([layers, heads, ...sizes]);
    const ink = themeColors(root, []).ink;
    if (this.drawn === asked + ink) return;
    this.drawn = asked + ink;
    const context = clearedCanvas(this.canvas, root.clientWidth, root.clientHeight);
    this.canvas.style.width = `${root.clientWidth}px`;
    const scale = this.canvas.width / Math.max(1, root.clientWidth);
    const side = Math.max(1, Math.round(first.clientWidth * scale));
    const image = context.createImageData(this.canvas.width, this.canvas.height);
    this.fill(image, side, scale, channels(ink));
    context.putImageData(image, 0, 0);
    const isPooled = this.data.links || side < Math.max(...this.data.shape);
    this.grid.legend.querySelector(".pooled").hidden = !isPooled;
  }

  legend() {
    const pooled = newElement("span", "pooled", POOLED);
    pooled.hidden = true;
    return [termElement("how to read", READ), pooled];
  }

  fill(image, side, scale, [red, green, blue]) {
    const [down, across] = this.data.shape;
    const pixels = new Uint32Array(image.data.buffer);
    const ink = (blue << 16) | (green << 8) | red;
    const [rows, columns] = [stretches(down, side), stretches(across, side)];
    let start = 0;
    for (const cell of this.grid.cells.values()) {
      const left = Math.round((cell.offsetLeft + cell.clientLeft) * scale);
      const top = Math.round((cell.offsetTop + cell.clientTop) * scale);
      const pattern = this.cells.subarray(start, (start += down * across));
      for (let y = 0; y < side && top + y < image.height; y++) {
        let at = (top + y) * image.width + left;
        for (let x = 0; x < side; x++, at++) {
          const most = largest(pattern, across, rows.first[y], rows.end[y], columns.first[x], columns.end[x]);
          pixels[at] = (most << 24) | ink;
        }
      }
    }
  }

  /** Show a head in the arcs until `end`, after which they show their own heads again. */
  preview([layer, head]) {
    if (!this.data) return;
    this.isHeld = false;
    this.shown = `L${layer} H${head}`;
    this.tell({ name: this.shown, ...this.weightsOf(layer * this.grid.data.heads + head) });
  }

  end() {
    if (this.shown && !this.isHeld) this.tell(null);
    this.shown = null;
  }

  /** Keep the previewed head, now selected, in the arcs until Python sends it. */
  hold() {
    this.isHeld = this.shown !== null;
  }

  tell(head) {
    document.dispatchEvent(new CustomEvent(PREVIEW, { detail: { frame: this.grid.data.frame, head } }));
  }

  /** A head's weights, and the maximum number of links per query that they include; null if they include all. */
  weightsOf(head) {
    const { queries, keys, links } = this.data;
    const size = queries * keys;
    if (!links) {
      const steps = this.cells.subarray(head * size, (head + 1) * size);
      return { attention: Float32Array.from(steps, (step) => (step / 255) ** 2), each: null };
    }
    const attention = new Float32Array(size);
    for (let query = 0, at = head * queries * links.each; query < queries; query++) {
      for (let link = 0; link < links.each; link++, at++) {
        attention[query * keys + this.links.keys[at]] = (this.links.weights[at] / 255) ** 2;
      }
    }
    return { attention, each: links.each };
  }
}

/** For each pixel along a side, the first cell that it shows and the one after the last; at least one cell. */
function stretches(nCells, side) {
  const first = Int32Array.from({ length: side }, (_, pixel) => Math.floor((pixel * nCells) / side));
  const end = first.map((start, pixel) => Math.max(start + 1, Math.floor(((pixel + 1) * nCells) / side)));
  return { first, end };
}

function largest(pattern, across, top, bottom, left, right) {
  let most = 0;
  for (let row = top; row < bottom; row++) {
    for (let column = left; column < right; column++) {
      const value = pattern[row * across + column];
      if (value > most) most = value;
    }
  }
  return most;
}
