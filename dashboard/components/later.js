// Some things are told to Python a moment later. Where the reader leaves the page first, they are not told: whatever
// reaches Streamlit after the click on a link counts as a wish of the page before, and it then shows that page again,
// or nothing at all.

const LONGEST_WAY = 30000; // milliseconds to the next page, after which this one has its say again

const waiting = new Map();
let leaving = { to: location.pathname, until: 0 };

/** Act after some milliseconds; another call for the same owner takes the place of this one. */
function later(owner, act, delay) {
  neverMind(owner);
  if (location.pathname !== leaving.to && performance.now() < leaving.until) return;
  waiting.set(owner, setTimeout(act, delay));
}

function neverMind(owner) {
  clearTimeout(waiting.get(owner));
  waiting.delete(owner);
}

function leadsAway(link, { ctrlKey, metaKey, shiftKey }) {
  const opensElsewhere = link.target || link.download || ctrlKey || metaKey || shiftKey;
  return !opensElsewhere && link.origin === location.origin && link.pathname !== location.pathname;
}

addEventListener(
  "click",
  (event) => {
    const link = event.composedPath().find((node) => node.tagName === "A" && node.href);
    if (!link || !leadsAway(link, event)) return;
    [...waiting.keys()].forEach(neverMind);
    leaving = { to: link.pathname, until: performance.now() + LONGEST_WAY };
  },
  { capture: true },
);
addEventListener("popstate", () => [...waiting.keys()].forEach(neverMind), { capture: true });
