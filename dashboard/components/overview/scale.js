// Maps ratios to colours on a log scale with equal steps in OKLab, so that equal factors look equally far apart.

const STEPS_PER_OCTAVE = 1800;
const LEAST_OCTAVE = -16;
const NOT_SEEN = 65535;
const FLOOR = -3; // octaves; an eighth of uniform attention and anything less look the same
const LEAST_TOP = 2;
const SHADES = 256;
// Lightness is monotonic, so that neither colour blindness nor a greyscale print reverses the order. `middle` is placed
// so that both halves have the same step: it is the middle colour's share of the whole distance in OKLab.
const RAMPS = {
  light: { colors: ["oklch(0.97 0.02 100)", "oklch(0.62 0.1 215)", "oklch(0.24 0.1 285)"], middle: 0.478 },
  dark: { colors: ["oklch(0.24 0.03 270)", "oklch(0.58 0.11 235)", "oklch(0.96 0.1 100)"], middle: 0.458 },
};

/** Decode octaves above uniform attention: -Infinity for no attention, NaN where no query sees a key. */
function decodeOctaves(base64) {
  return Float32Array.from(new Uint16Array(bytesOf(base64).buffer), (step) => {
    if (step === NOT_SEEN) return NaN;
    return step === 0 ? -Infinity : step / STEPS_PER_OCTAVE + LEAST_OCTAVE;
  });
}

/** Top of the scale in whole octaves; the same for all maps, so that they can be compared. */
function topOctave(octaves) {
  return octaves.reduce((top, octave) => (octave > top ? Math.ceil(octave) : top), LEAST_TOP);
}

/** Red, green, blue and alpha of each shade, from weak to strong. */
function shadesOf(background) {
  const { colors, middle } = RAMPS[luminance(background) > 0.2 ? "light" : "dark"];
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: SHADES, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  for (let shade = 0; shade < SHADES; shade++) {
    const part = shade / (SHADES - 1);
    const [from, to] = part < middle ? [colors[0], colors[1]] : [colors[1], colors[2]];
    const way = part < middle ? part / middle : (part - middle) / (1 - middle);
    context.fillStyle = `color-mix(in oklab, ${to} ${100 * way}%, ${from})`;
    context.fillRect(shade, 0, 1, 1);
  }
  return context.getImageData(0, 0, SHADES, 1).data;
}

function shadeAt(octave, top) {
  const part = (octave - FLOOR) / (top - FLOOR);
  return Math.round((SHADES - 1) * Math.max(0, Math.min(1, part)));
}

function ratioText(octave) {
  const ratio = 2 ** octave;
  if (ratio > 0 && ratio < 0.01) return "under 0.01 x uniform";
  if (ratio >= 100) return `${counted(Math.round(ratio))} x uniform`;
  return `${Number(ratio.toPrecision(2))} x uniform`;
}

function renderLegend(view) {
  const { legend } = view.elements;
  const { names, causal } = view.data;
  const ramp = newElement("span", "ramp");
  const stops = [0, 32, 64, 96, 128, 160, 192, 224, 255].map((shade) => {
    return `rgb(${view.shades.subarray(shade * 4, shade * 4 + 3).join(" ")})`;
  });
  ramp.style.backgroundImage = `linear-gradient(90deg, ${stops.join(", ")})`;
  const bar = newElement("span", "bar");
  bar.append(ramp, ...legendTicks(view.top));
  const parts = [newElement("span", "", "Attention, times uniform"), bar];
  if (causal) {
    parts.push(newElement("span", "unseen"));
    parts.at(-1).append(newElement("i", "swatch"), "later tokens: not seen");
  }
  parts.push(newElement("span", "", `${names[0]} down, ${names[1]} across`));
  legend.replaceChildren(...parts);
}

function legendTicks(top) {
  const every = Math.ceil((top - FLOOR) / 5);
  const octaves = [];
  for (let octave = 0; octave <= top; octave += every) octaves.push(octave);
  for (let octave = -every; octave >= FLOOR; octave -= every) octaves.unshift(octave);
  if (octaves[0] < 0) octaves.shift();
  octaves.unshift(FLOOR);
  return octaves.map((octave) => {
    const value = octave < 0 ? `1/${2 ** -octave}` : counted(2 ** octave);
    const tick = newElement("span", "tick", octave === FLOOR ? `≤ ${value}` : value);
    tick.style.left = `${(100 * (octave - FLOOR)) / (top - FLOOR)}%`;
    return tick;
  });
}
