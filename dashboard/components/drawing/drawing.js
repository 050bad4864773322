// Shows an SVG. It is parsed as XML, never as HTML, and may contain only shapes and text.

const ALLOWED = new Set(["svg", "path", "rect", "text"]);

export default function ({ data, parentElement }) {
  const place = parentElement.querySelector(".drawing");
  place.setAttribute("aria-label", data.label);
  const { documentElement } = new DOMParser().parseFromString(data.svg, "image/svg+xml");
  const elements = [documentElement, ...documentElement.querySelectorAll("*")];
  if (!elements.every((each) => ALLOWED.has(each.localName))) throw new Error("This is no drawing.");
  place.replaceChildren(document.importNode(documentElement, true));
}
