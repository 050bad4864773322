// What Python sends, unpacked. Nothing here touches the page.

/** Weights from their square roots in 256 steps; each row sums again to what of it stays in the window. */
function decodeAttention(base64, nKeys, inside) {
  const steps = bytesOf(base64);
  const attention = Float32Array.from(steps, (step) => (step / 255) ** 2);
  inside.forEach((part, row) => {
    const start = row * nKeys;
    scaleRow(attention, start, nKeys, sumRow(attention, start, nKeys) / part);
  });
  return attention;
}

/** Differences of weights, between -1 and 1, in steps of 1/32767; rows stay as they are. */
function decodeDifference(base64) {
  return Float32Array.from(new Int16Array(bytesOf(base64).buffer), (step) => step / 32767);
}

/** The part of each query's attention that stays in the window, for each head; all of it without a window. */
function decodeInside(base64, nRows) {
  if (base64 === null) return new Float32Array(nRows).fill(1);
  return Float32Array.from(new Uint16Array(bytesOf(base64).buffer), (step) => step / 65535);
}

function sumRow(attention, start, length) {
  let sum = 0;
  for (let at = start; at < start + length; at++) sum += attention[at];
  return sum;
}

function scaleRow(attention, start, length, sum) {
  for (let at = start; at < start + length; at++) attention[at] = sum > 0 ? attention[at] / sum : 0;
}

function decodeSieve(base64, nCells) {
  const packed = bytesOf(base64);
  return Uint8Array.from({ length: nCells }, (_, at) => (packed[at >> 3] >> (7 - (at & 7))) & 1);
}
