// What the links of a single head go to, which gives each its colour.

/**
 * The number of each link's target. A link may have several, as a verb's object may be the next word: it takes the one
 * to which the head gives most attention in the text. Only a link without any has that of its own segment, or "other".
 */
function targetsOfLinks(table, source) {
  const { rows, nQueries, nKeys } = table;
  const numbers = Object.fromEntries(source.data.targets.map(({ name }, number) => [name, number]));
  const ofLinks = Array.from({ length: nQueries * nKeys }, (_, at) => {
    return namesOfTargets(table, source, Math.floor(at / nKeys), at % nKeys).map((name) => numbers[name]);
  });
  const masses = new Float64Array(source.data.targets.length);
  ofLinks.forEach((targets, at) => targets.forEach((target) => (masses[target] += table.attention[at])));
  const areTwo = rows.to.some(({ segment }) => segment === 0) && rows.to.some(({ segment }) => segment === 1);
  return Uint8Array.from(ofLinks, (targets, at) => {
    if (targets.length) return targets.reduce((most, target) => (masses[target] > masses[most] ? target : most));
    const [from, to] = [rows.from[Math.floor(at / nKeys)], rows.to[at % nKeys]];
    return areTwo && from.segment === to.segment && to.segment >= 0 ? numbers.segment : numbers.other;
  });
}

function namesOfTargets({ rows, nKeys, grammar }, { keys }, query, key) {
  const [from, to] = [rows.from[query], rows.to[key]];
  const isOneText = !keys.name;
  const names = to.kind === "other" ? [] : [to.kind];
  if (isOneText && to.position + to.tokens.length === from.position) names.push("previous");
  if (isOneText && from.position + from.tokens.length === to.position) names.push("next");
  if (grammar?.[query * nKeys + key]) names.push("grammar");
  return names;
}

function usesTargets({ table, source }) {
  return !table.signed && source.data.heads.length === 1;
}

/** Name the colours of the links that are drawn. */
function renderTargets(view) {
  const { elements, links, linkColors, source } = view;
  const isShown = Boolean(linkColors.ofLink) && !isAsking(view) && !view.choices.matrix;
  elements.targets.hidden = !isShown;
  if (!isShown) return;
  const drawn = new Set(links.kept.map((at) => linkColors.ofLink[at]));
  const entries = source.data.targets.map(({ label }, number) => {
    const swatch = newElement("i", "swatch");
    swatch.style.setProperty("--head", linkColors.pens[number]);
    const entry = newElement("span", "sign");
    entry.append(swatch, label);
    entry.hidden = !drawn.has(number);
    return entry;
  });
  elements.targets.replaceChildren(...entries);
}
