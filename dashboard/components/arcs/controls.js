// The switches above the drawing. All strings are inserted as text, so tokens never become markup.

const SHARE_STEP = 0.05;
const STRONGEST = [["Strongest 1", 1], ["2", 2], ["3", 3], ["By share", null]];
const PREVIEWED = "preview: click to choose it";
const KEYS = "Arrow keys: next head (← →), next layer (↑ ↓)";
const LAST_HEAD = "At least one head stays on.";
const MORE = "More settings";
const SIEVE = "Highlight the tokens that a role expects";
const NO_SIEVE = "none";

/** Build the switches that this text needs; rebuild them only if others are needed, so that focus is not lost. */
function renderControls(view) {
  const needs = neededControls(view.source);
  const signature = JSON.stringify(needs);
  if (view.controlsBuilt !== signature) {
    view.controlsBuilt = signature;
    buildControls(view, needs);
  }
  syncControls(view);
}

function neededControls({ queries, keys, data }) {
  const isOnASide = (test) => test(queries) || test(keys);
  return {
    words: isOnASide(({ words }) => words.some((word, position) => word >= 0 && word === words[position - 1])),
    specials: isOnASide(({ special }) => special.includes(1) && special.includes(0)),
    pairs: pairOptions(queries, keys),
    sieves: data.sieves,
    signed: data.signed !== null,
    pens: data.signed === null && data.heads.length === 1,
  };
}

function buildControls(view, needs) {
  const more = [
    needs.words && switchOf(view, "Rows", "byWord", [["Word pieces", false], ["Words", true]]),
    needs.specials && switchOf(view, "Special tokens", "hideSpecials", [["Shown", false], ["Hidden", true]]),
    needs.pairs.length > 0 && switchOf(view, "Segments", "pair", [["All", null], ...needs.pairs]),
    needs.sieves.length > 0 && sieveList(view, needs.sieves),
    switchOf(view, "Links per word", "strongest", STRONGEST),
    shareSlider(view),
    needs.pens && switchOf(view, "Colour", "penPerWord", [["By target", false], ["Per word", true]]),
  ];
  const whole = switchOf(view, "View", "matrix", [["Arcs", false], ["Matrix", true]]);
  view.elements.controls.replaceChildren(whole, folded(view, more.filter(Boolean)));
}

/** The settings that a first visit does without, below a line that unfolds them. */
function folded(view, settings) {
  const more = newElement("details", "more");
  const inside = newElement("div", "settings");
  more.open = Boolean(view.isUnfolded);
  more.addEventListener("toggle", () => (view.isUnfolded = more.open));
  inside.append(...settings);
  more.append(newElement("summary", "", MORE), inside);
  return more;
}

/** The pairs of segments to choose from; none if each side has only one segment. */
function pairOptions(queries, keys) {
  const [from, to] = [queries, keys].map(({ segments }) => [0, 1].filter((segment) => segments.includes(segment)));
  if (from.length < 2 && to.length < 2) return [];
  return from.flatMap((query) => to.map((key) => [pairName(query, key, from, to), [query, key]]));
}

function pairName(query, key, from, to) {
  const [one, other] = ["AB"[query], "AB"[key]];
  if (from.length < 2) return `To ${other}`;
  return to.length < 2 ? `From ${one}` : `${one} to ${other}`;
}

/** A row of radio buttons for one choice. */
function switchOf(view, legend, choice, options) {
  const group = newElement("fieldset", "switch");
  group.dataset.choice = choice;
  group.append(newElement("legend", "", legend));
  for (const [label, value] of options) {
    const radio = Object.assign(newElement("input"), { type: "radio", name: choice, value: JSON.stringify(value) });
    radio.addEventListener("change", () => choose(view, { [choice]: value }));
    const option = newElement("label");
    option.append(radio, newElement("span", "", label));
    group.append(option);
  }
  return group;
}

/** The roles whose sieve can be laid over the links; Python sends the sieve of the chosen one. */
function sieveList(view, roles) {
  const label = newElement("label", "sieve-list");
  const list = newElement("select");
  list.append(...[["", NO_SIEVE], ...roles].map(([role, title]) => new Option(title, role)));
  list.addEventListener("change", () => choose(view, { sieve: list.value }));
  label.append(newElement("span", "", SIEVE), list);
  return label;
}

function shareSlider(view) {
  const label = newElement("label", "share");
  const slider = newElement("input");
  Object.assign(slider, { type: "range", min: SHARE_STEP, max: 1, step: SHARE_STEP });
  slider.addEventListener("input", () => choose(view, { share: Number(slider.value) }));
  const of = view.source.data.signed ? "difference" : "attention";
  slider.ariaLabel = label.title = `Keep the top share of each query’s ${of}`;
  label.append(slider, newElement("output"));
  return label;
}

function syncControls(view) {
  const { choices, elements } = view;
  elements.controls.querySelectorAll("fieldset").forEach((group) => {
    const chosen = JSON.stringify(choices[group.dataset.choice]);
    group.disabled = choices.matrix && ["strongest", "penPerWord"].includes(group.dataset.choice);
    group.querySelectorAll("input").forEach((radio) => (radio.checked = radio.value === chosen));
  });
  const list = elements.controls.querySelector("select");
  if (list) list.value = view.source.data.sieves.some(([role]) => role === choices.sieve) ? choices.sieve : "";
  const share = elements.controls.querySelector(".share");
  share.hidden = choices.strongest !== null;
  const [slider, output] = share.querySelectorAll("input, output");
  slider.value = choices.share;
  slider.disabled = choices.matrix;
  slider.setAttribute("aria-valuetext", percent(choices.share));
  output.textContent = percent(choices.share);
}

function renderHeadChips(view) {
  const { data } = view.source;
  const { elements, colors } = view;
  const visible = visibleHeads(view);
  const isPreview = view.own !== null;
  const built = JSON.stringify([isPreview, data.heads.map((head) => head.name)]);
  if (view.chipsBuilt !== built) {
    view.chipsBuilt = built;
    const hadFocus = elements.heads.matches(":focus-within");
    const hint = newElement("span", isPreview ? "hint" : "hint keys", isPreview ? PREVIEWED : KEYS);
    const hints = isPreview || data.grid !== null ? [hint] : [];
    elements.heads.replaceChildren(...data.heads.map((head, number) => headChip(view, head.name, number)), ...hints);
    if (hadFocus) elements.heads.firstElementChild.focus();
  }
  elements.heads.querySelectorAll(".chip").forEach((chip, head) => {
    const isOn = visible.includes(head);
    const isLast = isOn && visible.length === 1;
    chip.style.setProperty("--head", view.linkColors === colors ? colors.pens[head] : colors.ink);
    chip.firstChild.classList.toggle("dashed", colors.dashed[head]);
    chip.setAttribute("aria-pressed", String(isOn));
    chip.title = isLast ? `${LAST_HEAD} Shift and click: all heads` : "Shift and click: only this head";
  });
}

function headChip(view, name, head) {
  const chip = Object.assign(newElement("button", "chip"), { type: "button" });
  chip.append(newElement("i", "swatch"), name);
  chip.addEventListener("click", (event) => toggleHead(view, head, event.shiftKey));
  return chip;
}

/** Legend of a difference: which colour means more and which less. A head's chip would only add a third colour. */
function renderSigns(view) {
  const { signed } = view.source.data;
  const { elements, colors } = view;
  elements.heads.hidden = signed !== null;
  elements.signs.hidden = signed === null;
  if (!signed) return;
  const name = newElement("b", "", view.source.data.heads[0].name);
  const signs = [signed.more, signed.less].map((text, pen) => {
    const swatch = newElement("i", colors.dashed[pen] ? "swatch dashed" : "swatch");
    swatch.style.setProperty("--head", colors.pens[pen]);
    const sign = newElement("span", "sign");
    sign.append(swatch, `${pen ? "−" : "+"} ${text}`);
    return sign;
  });
  elements.signs.replaceChildren(name, ...signs);
}

/** Toggle a head, but keep the last one on; with `alone`, show only this head, or all if it is the only one. */
function toggleHead(view, head, alone) {
  const { heads } = view.source.data;
  const visible = visibleHeads(view);
  const isOnlyOne = visible.length === 1 && visible[0] === head;
  let shown = visible.includes(head) ? visible.filter((other) => other !== head) : [...visible, head];
  if (alone) shown = isOnlyOne ? heads.map((_, other) => other) : [head];
  if (!shown.length) {
    showSummary(view, LAST_HEAD);
    announce(view);
    return;
  }
  choose(view, { headsOff: heads.filter((_, other) => !shown.includes(other)).map((other) => other.name) });
}

/** Indices of the heads that are on; all of them if every head has been switched off. */
function visibleHeads(view) {
  const { heads } = view.source.data;
  const on = heads.map((_, head) => head).filter((head) => !view.choices.headsOff.includes(heads[head].name));
  return on.length ? on : heads.map((_, head) => head);
}
