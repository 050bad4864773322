// From what Python sends to the table of weights that is drawn. Nothing here touches the page.

const ALMOST_ALL = 0.995; // quantised weights cannot tell a row that has less than this left from an empty one
const ROUNDING = 1e-6;
const SORT_STEPS = 2 ** 20;
const MOST_LINKS = 8000;
const SHARE_BINS = 1000;

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** Weights from their square roots in 256 steps; each row sums to 1 again. */
function decodeAttention(base64, nTokens) {
  const steps = bytesOf(base64);
  const attention = Float32Array.from(steps, (step) => (step / 255) ** 2);
  for (let start = 0; start < attention.length; start += nTokens) {
    scaleRow(attention, start, nTokens, sumRow(attention, start, nTokens));
  }
  return attention;
}

function sumRow(attention, start, length) {
  let sum = 0;
  for (let at = start; at < start + length; at++) sum += attention[at];
  return sum;
}

function scaleRow(attention, start, length, sum) {
  for (let at = start; at < start + length; at++) attention[at] = sum > 0 ? attention[at] / sum : 0;
}

function decodeSieve(base64, nTokens) {
  const packed = bytesOf(base64);
  return Uint8Array.from({ length: nTokens * nTokens }, (_, at) => (packed[at >> 3] >> (7 - (at & 7))) & 1);
}

/** The rows of the table: one for each token, or one for each word and each special token. */
function tableRows(data, byWord) {
  const rows = [];
  data.tokens.forEach((token, position) => {
    const word = data.words[position];
    const last = rows[rows.length - 1];
    if (byWord && word >= 0 && last && last.word === word) {
      last.tokens.push(position);
      return;
    }
    const label = byWord && word >= 0 ? data.wordLabels[word] : token;
    const row = { label, word, tokens: [position], special: Boolean(data.special[position]) };
    rows.push({ ...row, segment: data.segments[position] });
  });
  return rows;
}

/** Attention between rows: summed over the key's pieces, averaged over the query's, so that rows still sum to 1. */
function attentionBetweenRows(attention, nTokens, nHeads, rows) {
  const nRows = rows.length;
  if (nRows === nTokens) return attention;
  const rowOf = rowOfToken(rows, nTokens);
  const between = new Float32Array(nHeads * nRows * nRows);
  for (let head = 0; head < nHeads; head++) {
    for (let query = 0; query < nTokens; query++) {
      const from = rowOf[query];
      const start = (head * nRows + from) * nRows;
      const part = 1 / rows[from].tokens.length;
      for (let key = 0; key < nTokens; key++) {
        between[start + rowOf[key]] += part * attention[(head * nTokens + query) * nTokens + key];
      }
    }
  }
  return between;
}

function rowOfToken(rows, nTokens) {
  const rowOf = new Int32Array(nTokens).fill(-1);
  rows.forEach((row, number) => row.tokens.forEach((token) => (rowOf[token] = number)));
  return rowOf;
}

/** The same attention without special tokens; what is left of each row is scaled to sum to 1 where there is enough. */
function withoutSpecials(attention, nHeads, rows) {
  const shown = rows.map((row, number) => number).filter((number) => !rows[number].special);
  const nShown = shown.length;
  const kept = new Float32Array(nHeads * nShown * nShown);
  const onSpecials = new Float32Array(nHeads * nShown);
  for (let head = 0; head < nHeads; head++) {
    shown.forEach((query, row) => {
      const start = (head * nShown + row) * nShown;
      shown.forEach((key, column) => {
        kept[start + column] = attention[(head * rows.length + query) * rows.length + key];
      });
      const left = sumRow(kept, start, nShown);
      onSpecials[head * nShown + row] = 1 - left;
      scaleRow(kept, start, nShown, left > 1 - ALMOST_ALL ? left : 0);
    });
  }
  return { rows: shown.map((number) => rows[number]), attention: kept, onSpecials };
}

/** For each weight, the sum of the heavier ones in its row: a link belongs to the top share if this is below it. */
function reachedBefore(attention, nRows) {
  const reached = new Float32Array(attention.length);
  const order = new Float64Array(nRows);
  for (let start = 0; start < attention.length; start += nRows) {
    for (let key = 0; key < nRows; key++) {
      // Sorting numbers is many times faster than sorting pairs: weight first, then the earlier key.
      order[key] = Math.round(attention[start + key] * SORT_STEPS) * nRows + (nRows - 1 - key);
    }
    order.sort();
    let sum = 0;
    for (let rank = nRows - 1; rank >= 0; rank--) {
      const key = nRows - 1 - (order[rank] % nRows);
      reached[start + key] = sum;
      sum += attention[start + key];
    }
  }
  return reached;
}

function sieveBetweenRows(sieve, nTokens, rows) {
  if (!sieve) return null;
  const between = new Uint8Array(rows.length ** 2);
  rows.forEach((query, from) => {
    rows.forEach((key, to) => {
      const inside = query.tokens.some((one) => key.tokens.some((other) => sieve[one * nTokens + other]));
      between[from * rows.length + to] = inside ? 1 : 0;
    });
  });
  return between;
}

/** Everything that is drawn: rows, the attention between them for each head, and the sieve's cells. */
function buildTable(source, choices) {
  const { data, attention, sieve } = source;
  const nTokens = data.tokens.length;
  const nHeads = data.heads.length;
  let rows = tableRows(data, choices.byWord);
  let between = attentionBetweenRows(attention, nTokens, nHeads, rows);
  let onSpecials = null;
  if (choices.hideSpecials && rows.some((row) => !row.special)) {
    ({ rows, attention: between, onSpecials } = withoutSpecials(between, nHeads, rows));
  }
  return {
    rows,
    nRows: rows.length,
    nHeads,
    attention: between,
    onSpecials,
    reached: reachedBefore(between, rows.length),
    sieve: sieveBetweenRows(sieve, nTokens, rows),
    rowOf: rowOfToken(rows, nTokens),
  };
}

function weightAt(table, head, query, key) {
  return table.attention[(head * table.nRows + query) * table.nRows + key];
}

function isKept(table, share, at) {
  return table.attention[at] > 0 && table.reached[at] < share - ROUNDING;
}

/** Whether a link stays under the segment filter, which names the query's and the key's segment or is null for all. */
function inPair(table, pair, query, key) {
  return !pair || (table.rows[query].segment === pair[0] && table.rows[key].segment === pair[1]);
}

/**
 * Places in the table of the links to draw. Where they are too many, the share is lowered for all queries alike, so
 * that a head that spreads its attention thinly keeps its part of the picture.
 */
function keptLinks(table, heads, share, pair) {
  const links = [];
  for (const head of heads) {
    for (let query = 0; query < table.nRows; query++) {
      const start = (head * table.nRows + query) * table.nRows;
      for (let key = 0; key < table.nRows; key++) {
        if (isKept(table, share, start + key) && inPair(table, pair, query, key)) links.push(start + key);
      }
    }
  }
  if (links.length <= MOST_LINKS) return { links, total: links.length, share };
  const lowered = affordableShare(table, links);
  return { links: links.filter((at) => table.reached[at] < lowered), total: links.length, share: lowered };
}

/** The largest share that keeps no more than MOST_LINKS, or only each query's first link if those are more. */
function affordableShare(table, links) {
  const binOf = (at) => Math.ceil(table.reached[at] * SHARE_BINS);
  const counts = new Int32Array(SHARE_BINS + 2);
  links.forEach((at) => counts[binOf(at)]++);
  let count = counts[0];
  let bin = 0;
  while (count + counts[bin + 1] <= MOST_LINKS) count += counts[++bin];
  return Math.max(ROUNDING, bin / SHARE_BINS);
}

/** Links of one token, strongest first; `side` is "from" for a query and "to" for a key. */
function linksOfRow(table, heads, pair, { side, row }) {
  const links = [];
  for (const head of heads) {
    for (let other = 0; other < table.nRows; other++) {
      const [query, key] = side === "from" ? [row, other] : [other, row];
      const at = (head * table.nRows + query) * table.nRows + key;
      if (table.attention[at] > 0 && inPair(table, pair, query, key)) {
        links.push({ at, head, query, key, other, weight: table.attention[at] });
      }
    }
  }
  return links.sort((one, two) => two.weight - one.weight);
}
