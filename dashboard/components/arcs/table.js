// Conversion of weights to the table: queries and keys as rows, by token or word, with or without special tokens.

const ALMOST_ALL = 0.995; // beyond this, quantised weights cannot distinguish what is left of a row from nothing

/** The rows of one side: one for each token, or one for each word and each special token. */
function sideRows(side, byWord) {
  const rows = [];
  side.tokens.forEach((token, place) => {
    const word = side.words[place];
    const last = rows[rows.length - 1];
    if (byWord && word >= 0 && last && last.word === word) {
      last.tokens.push(place);
      return;
    }
    const label = byWord && word >= 0 ? side.wordLabels[word] : token;
    const row = { label, word, tokens: [place], special: Boolean(side.special[place]), kind: side.kinds[place] ?? "other" };
    rows.push({ ...row, segment: side.segments[place], position: side.start + place });
  });
  return rows;
}

function rowOfToken(rows, nTokens) {
  const rowOf = new Int32Array(nTokens).fill(-1);
  rows.forEach((row, number) => row.tokens.forEach((token) => (rowOf[token] = number)));
  return rowOf;
}

/** Attention between rows: summed over a key's pieces and averaged over a query's, which preserves row sums. */
function attentionBetweenRows({ attention, queries, keys }, nHeads, rows) {
  const [nQueries, nKeys] = [queries.tokens.length, keys.tokens.length];
  const [nFrom, nTo] = [rows.from.length, rows.to.length];
  if (nFrom === nQueries && nTo === nKeys) return attention;
  const [fromOf, toOf] = [rowOfToken(rows.from, nQueries), rowOfToken(rows.to, nKeys)];
  const between = new Float32Array(nHeads * nFrom * nTo);
  for (let head = 0; head < nHeads; head++) {
    for (let query = 0; query < nQueries; query++) {
      const from = fromOf[query];
      const start = (head * nFrom + from) * nTo;
      const part = 1 / rows.from[from].tokens.length;
      for (let key = 0; key < nKeys; key++) {
        between[start + toOf[key]] += part * attention[(head * nQueries + query) * nKeys + key];
      }
    }
  }
  return between;
}

/** Share of each row's attention that leaves the window, per head. */
function leavingOfRows({ inside, queries }, nHeads, rows) {
  const nQueries = queries.tokens.length;
  const leaving = new Float32Array(nHeads * rows.length);
  for (let head = 0; head < nHeads; head++) {
    rows.forEach(({ tokens }, row) => {
      const stays = tokens.reduce((sum, token) => sum + inside[head * nQueries + token], 0);
      leaving[head * rows.length + row] = 1 - stays / tokens.length;
    });
  }
  return leaving;
}

/**
 * The table without the special tokens on both sides. The rest of each row, inside and outside the window, is rescaled
 * to sum to 1 if enough is left; a row of differences has no such sum and stays unchanged. A side that has only special
 * tokens keeps them.
 */
function withoutSpecials(table) {
  const { rows, nHeads, nQueries, nKeys } = table;
  const [from, to] = [ordinary(rows.from), ordinary(rows.to)];
  const attention = new Float32Array(nHeads * from.length * to.length);
  const leaving = new Float32Array(nHeads * from.length);
  const onSpecials = new Float32Array(nHeads * from.length);
  for (let head = 0; head < nHeads; head++) {
    from.forEach((query, number) => {
      const [whole, row] = [head * nQueries + query, head * from.length + number];
      const start = row * to.length;
      to.forEach((key, column) => (attention[start + column] = table.attention[whole * nKeys + key]));
      if (table.signed) return;
      const left = sumRow(attention, start, to.length) + table.leaving[whole];
      const scale = left > 1 - ALMOST_ALL ? left : 0;
      onSpecials[row] = 1 - left;
      scaleRow(attention, start, to.length, scale);
      leaving[row] = scale && table.leaving[whole] / scale;
    });
  }
  const kept = { from: from.map((row) => rows.from[row]), to: to.map((row) => rows.to[row]) };
  return { ...table, rows: kept, nQueries: from.length, nKeys: to.length, attention, leaving, onSpecials };
}

function ordinary(rows) {
  const numbers = rows.map((_, number) => number);
  const kept = numbers.filter((number) => !rows[number].special);
  return kept.length ? kept : numbers;
}

function cellsBetweenRows(cells, { keys }, { rows, nQueries, nKeys }) {
  if (!cells) return null;
  const nTokens = keys.tokens.length;
  const between = new Uint8Array(nQueries * nKeys);
  rows.from.forEach((query, from) => {
    rows.to.forEach((key, to) => {
      const inside = query.tokens.some((one) => key.tokens.some((other) => cells[one * nTokens + other]));
      between[from * nKeys + to] = inside ? 1 : 0;
    });
  });
  return between;
}

/** Build the data to draw: the rows of both sides, the attention between them per head, and the sieve's cells. */
function buildTable(source, choices) {
  const { data, queries, keys } = source;
  const nHeads = data.heads.length;
  const rows = { from: sideRows(queries, choices.byWord), to: sideRows(keys, choices.byWord) };
  const attention = attentionBetweenRows(source, nHeads, rows);
  const leaving = leavingOfRows(source, nHeads, rows.from);
  const [nQueries, nKeys] = [rows.from.length, rows.to.length];
  const whole = { rows, nHeads, nQueries, nKeys, attention, leaving, signed: data.signed !== null };
  const hides = choices.hideSpecials && [...rows.from, ...rows.to].some((row) => row.special);
  const table = hides ? withoutSpecials(whole) : { ...whole, onSpecials: null };
  const strength = table.signed ? table.attention.map(Math.abs) : table.attention;
  return {
    ...table,
    hidden: hides,
    strength,
    least: table.signed ? data.signed.least : 0,
    ...heavierInRow(table.signed ? sharesOfRows(strength, table.nKeys) : strength, table.nKeys),
    sieve: cellsBetweenRows(source.sieve, source, table),
    grammar: cellsBetweenRows(source.grammar, source, table),
    rowOf: {
      from: rowOfToken(table.rows.from, queries.tokens.length),
      to: rowOfToken(table.rows.to, keys.tokens.length),
    },
  };
}

function weightAt(table, head, query, key) {
  return table.attention[(head * table.nQueries + query) * table.nKeys + key];
}

/** Whether a link passes the segment filter: the query's and the key's segment, or null for all links. */
function inPair(table, pair, query, key) {
  return !pair || (table.rows.from[query].segment === pair[0] && table.rows.to[key].segment === pair[1]);
}
