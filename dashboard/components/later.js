// Sends some values to Python after a short delay. If the reader leaves the page first, they are not sent: Streamlit
// treats everything that it receives after the click on a link as a request of the previous page, and then shows that
// page again, or nothing at all.

const LONGEST_WAY = 30000; // milliseconds to wait for the next page, after which this one may send values again

const waiting = new Map();
let leaving = { to: "", until: 0 };

/** Call `act` after a delay in milliseconds; another call for the same owner replaces this one. */
function later(owner, act, delay) {
  neverMind(owner);
  if (performance.now() < leaving.until && shownPath() !== leaving.to) return;
  waiting.set(owner, setTimeout(act, delay));
}

function neverMind(owner) {
  clearTimeout(waiting.get(owner));
  waiting.delete(owner);
}

/** Path of the page that is shown: Back changes the address before the page, a link after it. */
function shownPath() {
  return document.querySelector('a[aria-current="page"]')?.pathname ?? location.pathname;
}

function leave(to) {
  [...waiting.keys()].forEach(neverMind);
  leaving = { to, until: performance.now() + LONGEST_WAY };
}

function leadsAway(link, { ctrlKey, metaKey, shiftKey }) {
  const opensElsewhere = link.target || link.download || ctrlKey || metaKey || shiftKey;
  return !opensElsewhere && link.origin === location.origin && link.pathname !== location.pathname;
}

addEventListener(
  "click",
  (event) => {
    const link = event.composedPath().find((node) => node.tagName === "A" && node.href);
    if (link && leadsAway(link, event)) leave(link.pathname);
  },
  { capture: true },
);
addEventListener("popstate", () => leave(location.pathname), { capture: true });
