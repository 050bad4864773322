// All heads as small matrices. One tab stop; arrow keys move between heads, Enter or a click chooses one.

const CROWDED = 48;
const TARGET = 62;
const MOST_OBLONG = 3; // the longer side of a picture over its shorter one
const views = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  if (!views.has(parentElement)) views.set(parentElement, newView(parentElement));
  const view = views.get(parentElement);
  view.send = (head) => setTriggerValue("head", head);
  receive(view, data);
  return () => {
    view.sizes.disconnect();
    view.listening.abort();
    views.delete(parentElement);
  };
}

function newView(parent) {
  const view = {
    root: parent.querySelector(".view"),
    group: parent.querySelector(".thumbnails"),
    tip: parent.querySelector(".tip"),
    listening: new AbortController(),
    push: 0,
    marked: null,
  };
  const options = { signal: view.listening.signal };
  view.group.addEventListener("click", (event) => onButton(view, event, chooseHead), options);
  view.group.addEventListener("pointerover", (event) => onButton(view, event, tellHead), options);
  view.group.addEventListener("focusin", (event) => onButton(view, event, tellHead), options);
  view.group.addEventListener("keydown", (event) => onKey(view, event), options);
  view.sizes = new ResizeObserver(() => layOut(view));
  view.sizes.observe(view.root);
  return view;
}

function receive(view, data) {
  view.data = data;
  view.group.setAttribute("aria-label", data.label);
  if (data.push.number !== view.push) Object.assign(view, { push: data.push.number, marked: data.push.head });
  const names = JSON.stringify(data.heads);
  if (view.names !== names) {
    view.names = names;
    view.group.replaceChildren(...data.heads.map(([layer, head, name]) => headButton(layer, head, name)));
  }
  const pixels = Uint8Array.from(atob(data.pixels), (character) => character.charCodeAt(0));
  [...view.group.children].forEach((button, number) => drawThumbnail(view, button, number, pixels));
  layOut(view);
  markHead(view);
}

function headButton(layer, head, name) {
  const button = document.createElement("button");
  const label = document.createElement("span");
  label.className = "name";
  label.textContent = name;
  label.ariaHidden = "true";
  Object.assign(button, { type: "button", className: "thumbnail" });
  button.setAttribute("aria-label", `Layer ${layer}, head ${head}`);
  button.append(document.createElement("canvas"), label);
  return button;
}

function drawThumbnail(view, button, number, pixels) {
  const [height, width] = view.data.shape;
  const count = height * width;
  const canvas = button.querySelector("canvas");
  Object.assign(canvas, { width, height });
  canvas.style.aspectRatio = Math.min(MOST_OBLONG, Math.max(1 / MOST_OBLONG, width / height));
  const [red, green, blue] = inkOf(view.root);
  const image = new ImageData(width, height);
  for (let at = 0; at < count; at++) {
    image.data.set([red, green, blue, pixels[number * count + at]], at * 4);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** The text colour, so that thumbnails are legible in every theme. */
function inkOf(element) {
  const context = document.createElement("canvas").getContext("2d");
  context.fillStyle = getComputedStyle(element).color;
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data;
}

/** One row for each layer, as long as its heads stay large enough to hit. */
function layOut(view) {
  if (!view.data) return;
  const width = view.root.clientWidth;
  const across = Math.max(1, Math.min(view.data.perRow, Math.floor(width / TARGET)));
  view.across = across;
  view.root.style.setProperty("--across", across);
  view.root.classList.toggle("crowded", width / across < CROWDED);
}

function markHead(view) {
  const buttons = [...view.group.children];
  const isMarked = (number) => view.marked?.join() === view.data.heads[number].slice(0, 2).join();
  const marked = Math.max(0, buttons.findIndex((_, number) => isMarked(number)));
  buttons.forEach((button, number) => {
    button.setAttribute("aria-pressed", String(isMarked(number)));
    button.tabIndex = number === marked ? 0 : -1;
  });
}

function onButton(view, event, act) {
  const button = event.target.closest(".thumbnail");
  if (button) act(view, [...view.group.children].indexOf(button));
}

function chooseHead(view, number) {
  view.marked = view.data.heads[number].slice(0, 2);
  markHead(view);
  view.send(view.marked);
}

function tellHead(view, number) {
  const [layer, head, name] = view.data.heads[number];
  const [down, across] = view.data.names;
  view.tip.textContent = `${name}: layer ${layer}, head ${head}; ${down} down, ${across} across.`;
}

function onKey(view, event) {
  const buttons = [...view.group.children];
  const number = buttons.indexOf(event.target.closest(".thumbnail"));
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -view.across, ArrowDown: view.across };
  let next = number + (steps[event.key] ?? 0);
  if (event.key === "Home") next = 0;
  if (event.key === "End") next = buttons.length - 1;
  if (number < 0 || next === number || !(next in buttons)) return;
  event.preventDefault();
  buttons[number].tabIndex = -1;
  buttons[next].tabIndex = 0;
  buttons[next].focus();
}
