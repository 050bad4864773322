// Scrolls to where it is drawn, when what stands around it has its size.

const HEADER = 60; // pixels at the top of the page that its bar covers

export default function ({ parentElement }) {
  const host = parentElement.host ?? parentElement;
  const timer = setTimeout(() => {
    host.style.scrollMarginTop = `${HEADER}px`;
    host.scrollIntoView({ block: "start" });
  }, 150);
  return () => clearTimeout(timer);
}
