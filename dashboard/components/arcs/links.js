// Selection of the links to draw. A share refers to a query's whole attention, including what leaves the window; for
// differences, it refers to the sum of the row's absolute differences.

const ROUNDING = 1e-6;
const SORT_STEPS = 2 ** 20;
const MOST_LINKS = 8000;
const MOST_LINK_ROWS = 1e6; // a link in a tall drawing takes as long to draw as several in a short one
const MOST_FOCUS_LINKS = 500;
const SHARE_BINS = 1000;

/**
 * For each weight, the sum of the heavier weights in its row and their number, capped at 255: a link belongs to the top
 * share if the sum is below that share, and to the strongest n links if the number is below n.
 */
function heavierInRow(attention, nKeys) {
  const reached = new Float32Array(attention.length);
  const rank = new Uint8Array(attention.length);
  const order = new Float64Array(nKeys);
  for (let start = 0; start < attention.length; start += nKeys) {
    for (let key = 0; key < nKeys; key++) {
      // Sorting numbers is many times faster than sorting pairs: each encodes weight and key; ties favour earlier keys.
      order[key] = Math.round(attention[start + key] * SORT_STEPS) * nKeys + (nKeys - 1 - key);
    }
    order.sort();
    let sum = 0;
    for (let place = nKeys - 1; place >= 0; place--) {
      const key = nKeys - 1 - (order[place] % nKeys);
      reached[start + key] = sum;
      rank[start + key] = Math.min(255, nKeys - 1 - place);
      sum += attention[start + key];
    }
  }
  return { reached, rank };
}

function sharesOfRows(strength, nKeys) {
  const shares = strength.slice();
  for (let start = 0; start < shares.length; start += nKeys) {
    scaleRow(shares, start, nKeys, sumRow(shares, start, nKeys));
  }
  return shares;
}

/** The reader's limit for each row: its strongest links, or all links within a share of the attention. */
function limitOf({ strongest, share }) {
  return { strongest, share: strongest ? 1 : share };
}

function isKept(table, { strongest, share }, at) {
  if (table.strength[at] <= table.least) return false;
  return strongest ? table.rank[at] < strongest : table.reached[at] < share - ROUNDING;
}

/**
 * Table indices of the links to draw. If there are too many, the share is lowered equally for all queries, so that a
 * head that spreads its attention thinly keeps its part of the drawing.
 */
function keptLinks(table, heads, limit, pair) {
  const links = [];
  for (const head of heads) {
    for (let query = 0; query < table.nQueries; query++) {
      const start = (head * table.nQueries + query) * table.nKeys;
      for (let key = 0; key < table.nKeys; key++) {
        if (isKept(table, limit, start + key) && inPair(table, pair, query, key)) links.push(start + key);
      }
    }
  }
  const most = Math.min(MOST_LINKS, Math.ceil(MOST_LINK_ROWS / Math.max(table.nQueries, table.nKeys)));
  if (links.length <= most) return { links, total: links.length, share: limit.share };
  const lowered = affordableShare(table, links, most);
  return { links: linksBelow(table, links, lowered), total: links.length, share: lowered };
}

function linksBelow(table, links, share) {
  return links.filter((at) => table.reached[at] < share);
}

/** The largest share that keeps at most `most` links; if each query's heaviest link exceeds that, only those. */
function affordableShare(table, links, most) {
  const binOf = (at) => Math.ceil(table.reached[at] * SHARE_BINS);
  const counts = new Int32Array(SHARE_BINS + 2);
  links.forEach((at) => counts[binOf(at)]++);
  let count = counts[0];
  let bin = 0;
  while (count + counts[bin + 1] <= most) count += counts[++bin];
  return Math.max(ROUNDING, bin / SHARE_BINS);
}

/** Links of one token, strongest first; `side` is "from" for a query and "to" for a key. */
function linksOfRow(table, heads, pair, { side, row }) {
  const links = [];
  for (const head of heads) {
    for (let other = 0; other < table.rows[otherSide(side)].length; other++) {
      const [query, key] = side === "from" ? [row, other] : [other, row];
      const at = (head * table.nQueries + query) * table.nKeys + key;
      if (table.strength[at] > table.least && inPair(table, pair, query, key)) {
        links.push({ at, head, query, key, other, weight: table.attention[at] });
      }
    }
  }
  return links.sort((one, two) => table.strength[two.at] - table.strength[one.at]);
}
