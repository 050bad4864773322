// Tells Python that the page's elements are drawn: none is waiting for its code, and the browser is idle.

const LOADING = "[data-testid=stSkeleton]";
const LONGEST = 5000; // milliseconds after which the rest of the page is requested anyway

export default function ({ setStateValue }) {
  const begun = performance.now();
  let isGone = false;
  const look = () => {
    if (isGone) return;
    const waits = document.querySelector(LOADING) && performance.now() - begun < LONGEST;
    if (waits) setTimeout(look, 20);
    else requestAnimationFrame(() => requestIdleCallback(() => later(look, tell, 0), { timeout: 1000 }));
  };
  const tell = () => isGone || setStateValue("drawn", true);
  look();
  return () => {
    isGone = true;
  };
}
