// Heat map with one number per head: a cell has the number's colour on the scale, shows it, and may be marked by a dot.

class HeadMap extends HeadGrid {
  read() {
    const { parts, marked } = this.data;
    this.values = floatsOf(parts);
    this.marked = marked === null ? null : bytesOf(marked);
  }

  parts() {
    return 1;
  }

  index([layer, head]) {
    return layer * this.data.heads + head;
  }

  isMarked(place) {
    return this.marked !== null && this.marked[this.index(place)] === 1;
  }

  drawLegend() {
    const { title, low, high, mark, missing } = this.data;
    const scale = newElement("span", "scale");
    scale.append(this.endOf(low), this.ramp(), this.endOf(high));
    const entries = [newElement("b", "title", title), scale];
    if (this.marked !== null) entries.push(legendEntry(newElement("span", "swatch marked"), mark));
    if (this.values.some(Number.isNaN)) entries.push(legendEntry(newElement("span", "swatch missing"), missing));
    this.legend.replaceChildren(...entries);
  }

  endOf(words) {
    return newElement("span", "end", words.filter(Boolean).join(" "));
  }

  ramp() {
    const { more, less } = this.data.ends;
    const ramp = newElement("span", "ramp");
    const stops = [less, "var(--st-background-color)", more].filter(Boolean);
    ramp.style.backgroundImage = `linear-gradient(to right, ${stops.join(", ")})`;
    ramp.setAttribute("aria-hidden", "true");
    return ramp;
  }

  drawCell(cell) {
    const { ends, texts, cells } = this.data;
    const [layer, head] = cell.place;
    const part = this.values[this.index(cell.place)];
    const [number] = cell.children;
    cell.classList.toggle("missing", Number.isNaN(part));
    cell.classList.toggle("marked", this.isMarked(cell.place));
    number.className = "number";
    number.textContent = (cells ?? texts)[layer][head];
    number.style.setProperty("--end", part < 0 ? ends.less : ends.more);
    number.style.setProperty("--part", `${(100 * Math.abs(part || 0)).toFixed(1)}%`);
  }

  describe([layer, head]) {
    const { texts, missing, mark, details } = this.data;
    const marks = this.isMarked([layer, head]) ? `, ${mark}` : "";
    const more = details.map(({ label, texts: of }) => ` ${label}: ${of[layer][head]}.`).join("");
    return `Layer ${layer}, head ${head}: ${texts[layer][head] || missing}${marks}.${more}`;
  }

  tipTitle() {
    return "";
  }

  tipTable([layer, head]) {
    const table = newElement("table");
    const body = table.createTBody();
    for (const { label, texts } of this.data.details) {
      const row = body.insertRow();
      row.append(newElement("th", "", label), newElement("td", "", texts[layer][head]));
    }
    return table;
  }

  tipNotes(place) {
    const notes = [];
    if (Number.isNaN(this.values[this.index(place)])) notes.push(this.data.missing);
    if (this.isMarked(place)) notes.push(this.data.mark);
    return notes.map((note) => newElement("p", "", note));
  }
}

export default function (given) {
  return showHeads(HeadMap, given);
}
