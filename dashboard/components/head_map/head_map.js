// Heat map with one number per head: a cell has the number's colour on the scale, shows it, and may be outlined.

class HeadMap extends HeadGrid {
  read() {
    const { parts, outlined } = this.data;
    this.values = floatsOf(parts);
    this.outlined = outlined === null ? null : bytesOf(outlined);
  }

  parts() {
    return 1;
  }

  index([layer, head]) {
    return layer * this.data.heads + head;
  }

  isOutlined(place) {
    return this.outlined !== null && this.outlined[this.index(place)] === 1;
  }

  // A ring in the text colour would look like an outline.
  ring(order) {
    return this.data.colors[order % this.data.colors.length];
  }

  drawLegend() {
    const { title, low, high, outline, missing } = this.data;
    const scale = newElement("span", "scale");
    scale.append(this.endOf(low), this.ramp(), this.endOf(high));
    const entries = [newElement("b", "title", title), scale];
    if (this.outlined !== null) entries.push(legendEntry(newElement("span", "swatch outlined"), outline));
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
    cell.classList.toggle("outlined", this.isOutlined(cell.place));
    number.className = "number";
    number.textContent = (cells ?? texts)[layer][head];
    number.style.setProperty("--end", part < 0 ? ends.less : ends.more);
    number.style.setProperty("--part", `${(100 * Math.abs(part || 0)).toFixed(1)}%`);
  }

  describe([layer, head]) {
    const { texts, missing, outline, details } = this.data;
    const marks = this.isOutlined([layer, head]) ? `, ${outline}` : "";
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
    if (this.isOutlined(place)) notes.push(this.data.outline);
    return notes.map((note) => newElement("p", "", note));
  }
}

export default function (given) {
  return showHeads(HeadMap, given);
}
