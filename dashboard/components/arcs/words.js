// What the line below the drawing says, and what is read out.

const TOP_LINKS_NAMED = 4;
const MATRIX_HINT =
  "Point at a cell to read its weight. Stronger colour, more attention (shade by square root).";

function quoted(table, row) {
  // Isolates keep a right-to-left token from reordering the sentence around it.
  return `“\u2068${table.rows[row].label}\u2069”`;
}

function shownWeight(weight) {
  return weight.toFixed(2);
}

function restingSummary(view) {
  if (view.choices.matrix) return MATRIX_HINT;
  const { total, drawn, share } = view.links;
  const count = (number) => number.toLocaleString("en");
  const part = `the ${count(drawn)} in the top ${percent(share)} of each query’s attention`;
  const cut = `Of ${count(total)} links, ${part} are drawn`;
  const links = drawn < total ? cut : `${count(total)} links shown`;
  if (!total) return "No link is in the share that is kept. Raise it to see weaker ones.";
  return `${links}. Point at a token for its own; click to pin it.`;
}

function focusSummary(view, focus, links) {
  const { table, source } = view;
  const token = quoted(table, focus.row);
  const emptied = focus.side === "from" ? emptiedHeads(view, focus.row) : "";
  const named = links.filter(({ weight }) => weight >= LEAST_SHOWN).slice(0, TOP_LINKS_NAMED);
  const several = visibleHeads(view).length > 1;
  const parts = named.map(({ other, weight, head }) => {
    const name = several ? ` (${source.data.heads[head].name})` : "";
    return `${quoted(table, other)} ${shownWeight(weight)}${name}`;
  });
  const verb = focus.side === "from" ? "attends to" : "is attended by";
  if (!parts.length) return emptied || `${token} ${verb} nothing that is shown.`;
  const isDrawn = links.some(({ at }) => isKept(table, view.choices.share, at));
  const undrawn = isDrawn ? "" : " None of it is in the share that is kept.";
  return `${token} ${verb} ${parts.join(", ")}.${undrawn}${emptied ? ` ${emptied}` : ""}`;
}

/** Says so where hiding special tokens left a query nothing to show. */
function emptiedHeads(view, query) {
  const { table, source } = view;
  if (!table.onSpecials) return "";
  const emptied = visibleHeads(view).filter((head) => table.onSpecials[head * table.nRows + query] >= ALMOST_ALL);
  if (!emptied.length) return "";
  const names = joined(emptied.map((head) => source.data.heads[head].name));
  return `In ${names}, ${quoted(table, query)} attends to special tokens only, which are left out.`;
}

function showSummary(view, text) {
  if (view.elements.summary.textContent !== text) view.elements.summary.textContent = text;
}

/** Only what the keyboard or a switch did is read out; the pointer would flood a screen reader. */
function announce(view) {
  view.elements.live.textContent = view.elements.summary.textContent;
}

function renderNotes(view) {
  const { specialsNote, sieveNote } = view.elements;
  specialsNote.hidden = view.table.onSpecials === null;
  specialsNote.textContent = "Attention to special tokens left out; rows rescaled.";
  const { sieve } = view.source.data;
  sieveNote.hidden = sieve === null;
  if (sieve) sieveNote.textContent = sieveText(sieve, visibleHeads(view), view.source.data.heads);
}

function sieveText(sieve, shown, heads) {
  if (!sieve.queries) return `The ${sieve.role} sieve is empty in this text.`;
  const parts = shown.map((head, number) => {
    return `${percent(sieve.inside[head])} of ${heads[head].name}’s${number ? "" : " attention"}`;
  });
  const several = sieve.queries > 1;
  const queries = several ? `the ${sieve.queries} queries that have a sieve` : "the one query that has a sieve";
  return (
    `In the ${sieve.role} sieve: ${joined(parts)} (mean over ${queries}, special tokens counted). ` +
    `Evenly spread attention would give ${percent(sieve.even)}.`
  );
}

function joined(parts) {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts[parts.length - 1]}`;
}
