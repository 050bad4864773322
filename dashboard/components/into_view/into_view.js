// Scrolls to where it is drawn, when what stands around it has its size, unless the reader has gone on by then.

const HEADER = 60; // pixels at the top of the page that its bar covers

export default function ({ parentElement }) {
  const host = parentElement.host ?? parentElement;
  const timer = setTimeout(() => {
    host.style.scrollMarginTop = `${HEADER}px`;
    host.scrollIntoView({ block: "start" });
  }, 150);
  const stays = new AbortController();
  const stop = () => {
    clearTimeout(timer);
    stays.abort();
  };
  for (const act of ["pointerdown", "wheel", "keydown"]) {
    addEventListener(act, stop, { capture: true, passive: true, signal: stays.signal });
  }
  return stop;
}
