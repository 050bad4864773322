// Preview of the head that the reader points at in the grid, drawn instead of the chosen heads until the pointer leaves
// it; and the arrow keys, which ask the grid for the next head or layer.

const HEAD_STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

function listenForPreviews(view) {
  const take = ({ detail: { frame, head } }) => {
    if (!view.source || frame === null || view.source.data.frame !== frame) return;
    if (head) showPreview(view, head);
    else endPreview(view);
  };
  document.addEventListener(PREVIEW, take, { signal: view.listening.signal });
}

function showPreview(view, head) {
  const own = view.own ?? view.source;
  const isChosen = own.data.heads.length === 1 && own.data.heads[0].name === head.name;
  if (isChosen) {
    endPreview(view);
    return;
  }
  view.own = own;
  showSource(view, previewSource(own, head));
}

function endPreview(view) {
  if (!view.own) return;
  const { own } = view;
  view.own = null;
  showSource(view, own);
}

function showSource(view, source) {
  view.source = source;
  rebuild(view);
  drawSoon(view, true);
}

/** One head on the same text. If only its strongest links are known, the rest counts as leaving the table. */
function previewSource(own, { name, attention, each }) {
  const { data, queries, keys, sieve } = own;
  const [nQueries, nKeys] = [queries.tokens.length, keys.tokens.length];
  const isWhole = each === null && data.inside === null;
  const inside = new Float32Array(nQueries).fill(1);
  for (let query = 0; query < nQueries; query++) {
    const sum = sumRow(attention, query * nKeys, nKeys);
    if (isWhole) scaleRow(attention, query * nKeys, nKeys, sum);
    else inside[query] = Math.min(1, sum);
  }
  const heads = [{ ...data.heads[0], name }];
  const inSieve = data.sieve && { ...data.sieve, inside: [shareInSieve(attention, sieve, nKeys)] };
  return { ...own, attention, inside, preview: { each }, data: { ...data, heads, sieve: inSieve, inside: each === null ? data.inside : null } };
}

/** Share of a head's attention inside the sieve: the mean over the queries that have a sieve. */
function shareInSieve(attention, sieve, nKeys) {
  let [sum, count] = [0, 0];
  for (let start = 0; start < sieve.length; start += nKeys) {
    if (!sieve.subarray(start, start + nKeys).includes(1)) continue;
    count++;
    for (let at = start; at < start + nKeys; at++) sum += attention[at] * sieve[at];
  }
  return count ? sum / count : 0;
}

/** Ask the grid for another head: arrow keys on a head's chip, Shift + arrow keys on a token or matrix. */
function stepHead(view, event) {
  const by = HEAD_STEPS[event.key];
  const { grid } = view.source.data;
  const isOnName = event.target.closest?.(".chip");
  if (!by || grid === null || !(isOnName || (event.shiftKey && event.target.closest?.(".token, canvas")))) return;
  event.preventDefault();
  event.stopPropagation();
  document.dispatchEvent(new CustomEvent(STEP, { detail: { grid, by } }));
}
