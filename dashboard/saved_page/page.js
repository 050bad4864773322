// Draws a saved page from its data. Whatever comes from texts, tokens and names is inserted as text. The attention of the
// texts, nearly all of the page, is read after this script has drawn the grid: until then there is no page.drawn.

const page = JSON.parse(document.getElementById("page-data").textContent);
const MOST_ROWS = 500; // of a table, beyond which they are in the file alone
const SHOWN = {
  roles: ["role", "head", "texts", "mean", "low", "high", "p_adjusted", "stability", "holds"],
  comparison: ["role", "head", "texts", "mean_a", "mean_b", "difference", "p_adjusted", "effect", "holds_a", "holds_b"],
};
const HELD = { roles: ["holds"], comparison: ["holds_a", "holds_b"] };
const SHARES = new Set(["stability"]);
const { alpha, correction } = page.asked.settings.criterion;
const LABELS = {
  mean: `mean ${page.grids[0].noun}`,
  low: `${Math.round(100 * (1 - alpha))}% from`,
  high: "to",
  p_adjusted: `p (${correction})`,
  stability: "stays in",
  holds: "has the role",
  mean_a: `mean, ${page.names[0]}`,
  mean_b: `mean, ${page.names[1]}`,
  holds_a: `has it, ${page.names[0]}`,
  holds_b: `has it, ${page.names[1]}`,
};
const WORDS = new Set(["role", "head"]); // columns of words
const ROWS = [["With the role", "held"], ["Of the chosen heads", "chosen"], ["All", "all"]];

const find = (id) => document.getElementById(id);
const headName = ([layer, head]) => `L${layer} H${head}`;
const roleNames = page.roles; // as tables have them
const lookOf = (role) => page.grids[0].roles[roleNames.indexOf(role)];

function element(tag, className, ...content) {
  const made = newElement(tag, className);
  made.append(...content);
  return made;
}

/** A row of radio buttons. */
function switchOf(legend, name, options, first, act) {
  const group = element("fieldset", "switch", element("legend", "", legend));
  const buttons = element("span", "");
  options.forEach(([label, value]) => {
    const radio = Object.assign(element("input"), { type: "radio", name, checked: value === first });
    radio.addEventListener("change", () => act(value));
    buttons.append(element("label", "", radio, element("span", "", label)));
  });
  group.append(buttons);
  return group;
}

function checkbox(label, act) {
  const box = Object.assign(element("input"), { type: "checkbox" });
  box.addEventListener("change", () => act(box.checked));
  return element("label", "", box, label);
}

function listOf(label, options, act) {
  const list = element("select");
  list.append(...options.map(([name, value]) => new Option(name, value)));
  list.addEventListener("change", () => act(list.value));
  return element("label", "", label, list);
}

function button(label, act) {
  const made = Object.assign(element("button", "", label), { type: "button" });
  made.addEventListener("click", act);
  return made;
}

function download(name, type, content) {
  const link = Object.assign(element("a"), { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Grids and arcs: the same heads are chosen in all of them.

const heads = { chosen: page.first, patterns: true, finer: false, text: 0, views: [], lit: null };
const difference = { title: element("h3"), note: element("p", "note"), host: element("div"), arcs: null };

function buildSides() {
  const isTwo = page.names.length > 1;
  find("sides").classList.toggle("two", isTwo);
  page.names.forEach((name, number) => {
    const [grid, note, arcs] = [element("div", "grid-of-heads"), element("p", "note"), element("div")];
    const title = isTwo ? [element("h3", "", name)] : [];
    const below = isTwo ? [element("h3", "", name)] : [];
    find("sides").append(element("div", "side", ...title, grid, element("div", "arcs-of-heads", ...below, note, arcs)));
    const view = new LinkedText({ grid, note, arcs }, (chosen) => choose(chosen, number), isTwo ? "both" : null);
    view.chosen = heads.chosen;
    heads.views.push(view);
  });
  if (isTwo) {
    const { title, note, host } = difference;
    find("sides").append(element("div", "arcs-of-heads", title, note, host));
    difference.arcs = mounted(components.arcs, host);
  }
  const texts = page.asked.drawn.map(({ segments }, at) => [segments.join(" / "), at]);
  const controls = [
    texts.length > 1 && listOf("Text", texts, (at) => showHeads({ text: Number(at) })),
    switchOf("Grid", "grid", [["Patterns of the text", true], ["Roles", false]], true, (patterns) => showHeads({ patterns })),
    page.shown.fine.length > 0 && checkbox("Finer roles", (finer) => showHeads({ finer })),
  ];
  find("heads-controls").append(...controls.filter(Boolean));
}

function showHeads(change = {}) {
  Object.assign(heads, change);
  const shown = page.shown[heads.finer ? "fine" : "coarse"];
  heads.views.forEach((view, number) => {
    const grid = { ...page.grids[number], shown, highlight: heads.lit };
    view.show(grid, page.drawn?.[heads.text].sides[number], heads);
  });
  afterPaint(drawDifference); // once the views have unpacked their weights
}

/** Take the chosen heads: of one of the grids, or of a table, which is none of them. */
function choose(chosen, from = null) {
  heads.chosen = chosen;
  heads.views.forEach((view, number) => number !== from && view.choose(chosen));
  drawDifference();
  describeChosen();
  if (table.rows === "chosen") drawTable();
  else markChosen();
}

/** Where the head chosen last attends more in the second checkpoint, and where less: between tokens, or words. */
function drawDifference() {
  if (!difference.arcs || !heads.views[0].cells) return;
  const { title, note, host, arcs } = difference;
  const [last, data] = [heads.chosen.at(-1), page.drawn[heads.text].difference];
  title.textContent = last ? `${headName(last)}: ${page.names[1]} minus ${page.names[0]}` : "";
  note.textContent = data ? data.note : "The two share neither tokens nor words of this text.";
  host.hidden = !last || !data;
  if (host.hidden) return;
  const size = data.queries * data.keys;
  const start = (last[0] * page.grids[0].heads + last[1]) * size;
  const [a, b] = data.sides ? data.sides.map(({ cells }) => bytesOf(cells)) : heads.views.map(({ cells }) => cells);
  const steps = Int16Array.from({ length: size }, (_, at) => 32767 * ((b[start + at] / 255) ** 2 - (a[start + at] / 255) ** 2));
  arcs.show({
    ...data.arcs,
    group: data.sides ? null : "both",
    heads: [{ name: headName(last), color: page.grids[0].colors[0], dashed: false }],
    label: `Difference of the attention of ${title.textContent}`,
    attention: toBase64(new Uint8Array(steps.buffer)),
    sieve: null,
    inside: null,
    look: {},
    looks: 1,
    tells: true,
  });
}

/** Roles of the head chosen last, in words. */
function describeChosen() {
  const last = heads.chosen.at(-1);
  const sentences = last ? page.names.map((name, number) => rolesOf(last, number, name)) : [];
  find("chosen").replaceChildren(...sentences.flatMap((sentence) => [sentence, element("br")]));
}

function rolesOf([layer, head], number, name) {
  const { values } = page.tables.filter(({ kind }) => kind === "roles")[number];
  const held = values.role.flatMap((role, row) => {
    if (values.layer[row] !== layer || values.head[row] !== head || !values.holds[row]) return [];
    const interval = values.low[row] === null ? "" : `, ${written(values.low[row])} to ${written(values.high[row])}`;
    const p = values.p_adjusted[row] === null ? "" : `; p ${pWritten(values.p_adjusted[row])}`;
    return [`${lookOf(role).label} (mean ${page.grids[number].noun} ${written(values.mean[row])}${interval}${p})`];
  });
  const of = page.names.length > 1 ? ` in ${name}` : "";
  return `${headName([layer, head])}${of}: ${held.join(", ") || "no role over these texts"}.`;
}

function pWritten(p) {
  return p < 0.001 ? "< 0.001" : `= ${p.toFixed(3)}`;
}

// The tables, of which one is shown.

const isHeld = page.tables.some(({ kind, values }) => HELD[kind].some((name) => values[name].includes(true)));
const table = { at: 0, role: "", rows: isHeld ? "held" : "all", by: null, descending: true };

function buildTableControls() {
  const titles = page.tables.map(({ title }, at) => [title, at]);
  const roles = [["All roles", ""], ...roleNames.map((role) => [lookOf(role).label, role])];
  const controls = [
    titles.length > 1 && listOf("Table", titles, (at) => drawTable({ at: Number(at), by: null })),
    listOf("Role", roles, (role) => drawTable({ role })),
    switchOf("Heads", "rows", ROWS, table.rows, (rows) => drawTable({ rows })),
    button("CSV of the table", () => downloadTable(page.tables[table.at])),
  ];
  find("table-controls").append(...controls.filter(Boolean));
}

function drawTable(change = {}) {
  Object.assign(table, change);
  const { values, kind, columns, title } = page.tables[table.at];
  const names = SHOWN[kind].filter((name) => name === "head" || values[name]?.some((value) => value !== null));
  const rows = sortedRows(values, chosenRows(values, kind));
  const head = element("tr", "", ...names.map((name) => columnHead(name)));
  const body = element("tbody", "", ...rows.slice(0, MOST_ROWS).map((row) => tableRow(values, names, row)));
  const made = element("table", "", element("caption", "", title), element("thead", "", head), body);
  find("table").replaceChildren(made);
  const left = rows.length > MOST_ROWS ? ` The first ${MOST_ROWS} are shown; the file holds all.` : "";
  find("rows").textContent = `${counted(rows.length)} of ${counted(values.role.length)} rows.${left}`;
  const described = Object.entries(columns).flatMap(([name, says]) => [element("dt", "", name), element("dd", "", says)]);
  find("columns").replaceChildren(...described);
  markChosen();
}

function chosenRows(values, kind) {
  const ids = new Set(heads.chosen.map(String));
  return values.role.map((_, row) => row).filter((row) => {
    if (table.role && values.role[row] !== table.role) return false;
    if (table.rows === "chosen") return ids.has(`${values.layer[row]},${values.head[row]}`);
    return table.rows === "all" || HELD[kind].some((name) => values[name][row]);
  });
}

function sortedRows(values, rows) {
  const { by, descending } = table;
  if (by === null) return rows;
  const keyOf = (row) => (by === "head" ? values.layer[row] * 1e6 + values.head[row] : values[by][row]);
  const least = descending ? -Infinity : Infinity; // rows without a value come last
  const numbers = rows.map((row) => [row, by === "role" ? roleNames.indexOf(values.role[row]) : keyOf(row) ?? least]);
  return numbers.sort(([, a], [, b]) => (descending ? b - a : a - b)).map(([row]) => row);
}

function columnHead(name) {
  const head = element("th", WORDS.has(name) ? "words" : "", button(LABELS[name] ?? name, () => sortBy(name)));
  Object.assign(head, { scope: "col", title: page.tables[table.at].columns[name] });
  head.dataset.column = name;
  if (table.by === name) head.setAttribute("aria-sort", table.descending ? "descending" : "ascending");
  return head;
}

function sortBy(name) {
  const isFirst = table.by !== name;
  drawTable({ by: name, descending: isFirst ? !WORDS.has(name) : !table.descending });
  find("table").querySelector(`[data-column=${name}] button`).focus();
}

function tableRow(values, names, row) {
  const place = [values.layer[row], values.head[row]];
  const made = element("tr", "", ...names.map((name) => tableCell(values, name, row, place)));
  made.dataset.head = String(place);
  return made;
}

function tableCell(values, name, row, place) {
  if (name === "head") return element("td", "words", button(headName(place), () => choose([place])));
  const value = values[name][row];
  if (name !== "role") return element("td", "", SHARES.has(name) ? shareWritten(value) : written(value));
  const look = lookOf(value);
  return element("td", "words", roleSwatch(look, "swatch"), look.label);
}

function written(value) {
  if (value === null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number" || Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return (size < 0.001 || size >= 1e5 ? value.toExponential(2) : value.toFixed(size < 1 ? 3 : 2)).replace("-", "−");
}

function shareWritten(value) {
  return value === null ? "" : `${Math.floor(100 * value)}%`;
}

function markChosen() {
  const ids = new Set(heads.chosen.map(String));
  for (const row of find("table").querySelectorAll("tbody tr")) row.classList.toggle("chosen", ids.has(row.dataset.head));
}

function downloadTable({ title, values }) {
  const facts = Object.entries(page.facts).filter(([name]) => !(name in values));
  const names = [...Object.keys(values), ...facts.map(([name]) => name)];
  const lines = values.role.map((_, row) => [...Object.values(values).map((of) => of[row]), ...facts.map(([, fact]) => fact)]);
  const text = [names, ...lines].map((line) => line.map(cellOf).join(",")).join("\n");
  download(`${title.replace(/[^\w.-]+/g, "-")}.csv`, "text/csv", `${text}\n`);
}

function cellOf(value) {
  const text = value === null ? "" : typeof value === "boolean" ? (value ? "True" : "False") : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// Roles held together: a region dims the heads without it.

function buildOverlaps() {
  const views = page.overlaps.map(({ data, heads: combinations }, number) => {
    const host = element("div");
    const title = page.names.length > 1 ? [element("h3", "", page.names[number])] : [];
    find("overlaps").append(element("div", "", ...title, host));
    const view = mounted(components.role_venn, host, (_, region) => {
      const same = combinations.find(({ roles }) => region && String(roles) === String(region));
      showHeads({ lit: same ? same.heads : null });
    });
    view.show({ ...data, key: `overlaps ${number}`, rev: 1, region: null });
    return view;
  });
  return () => views.forEach((view) => view.redraw());
}

function buildTexts() {
  const { objects, file } = page.texts;
  find("texts-count").textContent = objects.length === 1 ? "The text" : `All ${counted(objects.length)} texts`;
  find("texts").append(...page.asked.texts.map(({ segments }) => element("li", "", segments.join(" / "))));
  find("facts").append(...Object.entries(page.facts).flatMap(([name, fact]) => [element("dt", "", name), element("dd", "", fact)]));
  const files = page.tables.map((each) => button(`CSV: ${each.title}`, () => downloadTable(each)));
  const texts = button(`Texts: ${file}`, () => download(file, "application/json", JSON.stringify(objects, null, 1)));
  find("files").append(texts, ...files);
}

buildSides();
showHeads();
describeChosen();
document.addEventListener("DOMContentLoaded", () => {
  page.drawn = JSON.parse(find("page-drawn").textContent);
  showHeads();
  afterPaint(() => {
    buildTableControls();
    drawTable();
    const redrawOverlaps = buildOverlaps();
    buildTexts();
    for (const colours of ["(prefers-color-scheme: dark)", "print"]) {
      matchMedia(colours).addEventListener("change", () => {
        [...heads.views, difference.arcs].forEach((view) => view?.redraw());
        redrawOverlaps();
      });
    }
  });
});
