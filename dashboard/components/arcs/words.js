// Text of the notes, of the summary line below the drawing and of the screen reader announcements.

const TOP_LINKS_NAMED = 4;

/** A token in quotes; in a window with its position, because a long text repeats the same token many times. */
function quoted({ table, source }, side, row) {
  const { label, position } = table.rows[side][row];
  // Isolates keep a right-to-left token from reordering the sentence around it.
  return `“\u2068${label}\u2069”${isWindow(source) ? ` (${counted(position)})` : ""}`;
}

function shownWeight({ signed }, weight) {
  const size = Math.abs(weight).toFixed(2);
  return signed && Number(size) > 0 ? `${weight < 0 ? "−" : "+"}${size}` : size;
}

function restingSummary(view) {
  const { preview, data } = view.source;
  if (!preview) return linksSummary(view);
  const known = preview.each === null ? "" : ` Of each token its ${preview.each} strongest links at most.`;
  return `Preview of ${data.heads[0].name}.${known} ${linksSummary(view)}`;
}

function linksSummary(view) {
  if (view.choices.matrix) return matrixHint(view.source);
  const { signed } = view.source.data;
  const { strongest, pair } = view.choices;
  const of = signed ? "difference" : "attention";
  const { total, drawn, share } = view.links;
  const part = share < 0.01 ? "each query’s heaviest" : `those in the top ${percent(share)} of each query’s ${of}`;
  const cut = `Of ${counted(total)} links, ${part} are drawn: ${counted(drawn)}`;
  const links = share < limitOf(view.choices).share ? cut : `${counted(total)} links shown${strongestWords(view)}`;
  if (!total && signed && !hasLinks(view)) return `No weight differs by more than ${signed.least}.`;
  if (!total && strongest) return `No strongest link${pair ? " is between these segments" : ""}. Choose By share to see weaker ones.`;
  if (!total) return "No link is in the share that is kept. Raise it to see weaker ones.";
  const whole = view.source.data.inside === null || strongest ? "" : " Shares count what leaves the window, too.";
  return `${links}.${whole} Point at a token for its own; click to pin it.`;
}

/** Description of the links drawn for each row if their number is limited; otherwise empty. */
function strongestWords({ choices: { strongest, byWord } }) {
  if (!strongest) return "";
  return `, the ${strongest > 1 ? `${strongest} ` : ""}strongest of each ${byWord ? "word" : "token"}`;
}

function hasLinks({ table }) {
  return table.strength.some((strength) => strength > table.least);
}

function matrixHint({ queries, keys, data }) {
  const [down, across] = [queries.name && `${queries.name} queries`, keys.name && `${keys.name} keys`];
  const axes = `${down || "Queries"} down, ${across || "keys"} across.`;
  const stronger = data.signed ? "a larger difference" : "more attention";
  return `${axes} Point at a cell to read its weight. Stronger colour, ${stronger} (shade by square root).`;
}

function focusSummary(view, focus, links) {
  const { table, source } = view;
  const token = quoted(view, focus.side, focus.row);
  const [leaving, emptied] = focus.side === "from" ? [leavingOf(view, focus.row), emptiedHeads(view, focus.row)] : [];
  const named = links.filter(({ weight }) => Math.abs(weight) >= LEAST_SHOWN).slice(0, TOP_LINKS_NAMED);
  const several = visibleHeads(view).length > 1;
  const parts = named.map(({ other, weight, head }) => {
    const name = several ? ` (${source.data.heads[head].name})` : "";
    return `${quoted(view, otherSide(focus.side), other)} ${shownWeight(table, weight)}${name}`;
  });
  if (table.signed) return differenceSummary(view, focus, token, parts, links);
  const verb = focus.side === "from" ? "attends to" : "is attended by";
  if (!parts.length) return [emptied || `${token} ${verb} nothing that is shown.`, leaving].filter(Boolean).join(" ");
  const sentence = `${token} ${verb} ${parts.join(", ")}.${undrawn(view, links)}`;
  return [sentence, leaving, emptied].filter(Boolean).join(" ");
}

/** Summary of the differences from or to a token: plus for more, minus for less. */
function differenceSummary(view, { side }, token, parts, links) {
  const [here, there] = side === "from" ? ["From", "to"] : ["To", "from"];
  if (!parts.length) return `${here} ${token} no weight differs by more than ${view.table.least}.`;
  return `${here} ${token} ${there} ${parts.join(", ")}.${undrawn(view, links)}`;
}

/** A note if a token has more links to draw than the maximum, or none; otherwise empty. */
function undrawn({ table, choices }, links) {
  const total = links.filter(({ at }) => isKept(table, limitOf(choices), at)).length;
  if (!total) return ` None of it is ${choices.strongest ? "among the strongest links" : "in the share that is kept"}.`;
  return total > MOST_FOCUS_LINKS ? ` Of ${counted(total)} links the heaviest ${MOST_FOCUS_LINKS} are drawn.` : "";
}

/** Text for the share of a query's attention that leaves the window: per head, or the mean for many heads. */
function leavingOf(view, query) {
  const { table, source } = view;
  if (source.data.inside === null) return "";
  const heads = visibleHeads(view);
  const parts = heads.map((head) => table.leaving[head * table.nQueries + query]);
  if (heads.length > MOST_HEADS_WITH_NUMBERS) return `Leaving the window: ${percent(mean(parts))} on average.`;
  const named = parts.map((part, place) => {
    return heads.length > 1 ? `${percent(part)} (${source.data.heads[heads[place]].name})` : percent(part);
  });
  return `Leaving the window: ${named.join(", ")}.`;
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** A note on the heads in which hiding special tokens leaves a query without links; otherwise empty. */
function emptiedHeads(view, query) {
  const { table, source } = view;
  if (!table.onSpecials) return "";
  const emptied = visibleHeads(view).filter((head) => table.onSpecials[head * table.nQueries + query] >= ALMOST_ALL);
  if (!emptied.length) return "";
  const names = joined(emptied.map((head) => source.data.heads[head].name));
  return `In ${names}, ${quoted(view, "from", query)} attends to special tokens only, which are left out.`;
}

function renderNotes(view) {
  const { windowNote, specialsNote, sieveNote } = view.elements;
  const inWindow = isWindow(view.source);
  windowNote.hidden = !inWindow;
  if (inWindow) windowNote.textContent = windowText(view);
  specialsNote.hidden = !view.table.hidden;
  specialsNote.textContent = specialsText(view.table, inWindow);
  const { sieve } = view.source.data;
  sieveNote.hidden = sieve === null;
  const { heads, signed } = view.source.data;
  if (sieve) sieveNote.textContent = sieveText(sieve, visibleHeads(view), heads, signed);
}

function specialsText({ signed }, inWindow) {
  const which = inWindow ? "special tokens in the window" : "special tokens";
  if (!signed) return `Attention to ${which} left out; rows rescaled.`;
  return `Differences to and from ${which} left out, the others as they were: rows no longer sum to 0.`;
}

/** The window's position in the whole text, and the mean share of attention that leaves it. */
function windowText(view) {
  const { table, source } = view;
  const { queries, keys, data } = source;
  const stretch = ({ start, tokens }) => `${counted(start)} to ${counted(start + tokens.length - 1)}`;
  const part = (axis, side) => `${axis} ${stretch(side)} of ${counted(side.whole)}`;
  const same = data.keys === null || (!keys.name && stretch(queries) === stretch(keys));
  const place = same ? part("Tokens", queries) : `${part("Queries", queries)}, ${part("keys", keys)}`;
  if (data.inside === null) return `${place}.`;
  const leaving = visibleHeads(view).flatMap((head) => {
    return [...table.leaving.subarray(head * table.nQueries, (head + 1) * table.nQueries)];
  });
  return `${place}. On average ${percent(mean(leaving))} of the attention leaves the window.`;
}

function sieveText(sieve, shown, heads, signed) {
  if (!sieve.queries) return `The ${sieve.role} sieve is empty in this text.`;
  const parts = shown.map((head, number) => {
    return `${percent(sieve.inside[head])} of ${heads[head].name}’s${number ? "" : " attention"}`;
  });
  const several = sieve.queries > 1;
  const queries = several ? `the ${sieve.queries} queries that have a sieve` : "the one query that has a sieve";
  if (signed) {
    const change = shownWeight({ signed }, sieve.inside[0]);
    return `In the ${sieve.role} sieve: ${change} of the attention (mean over ${queries}, special tokens counted).`;
  }
  return (
    `In the ${sieve.role} sieve: ${joined(parts)} (mean over ${queries}, special tokens counted). ` +
    `Evenly spread attention would give ${percent(sieve.even)}.`
  );
}

function joined(parts) {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts[parts.length - 1]}`;
}
