// Decoders for the data that Python sends. Nothing here touches the page.

/** Decode weights from square roots in 256 steps, and rescale each row to sum to its share inside the window. */
function decodeAttention(base64, nKeys, inside) {
  const steps = bytesOf(base64);
  const attention = Float32Array.from(steps, (step) => (step / 255) ** 2);
  inside.forEach((part, row) => {
    const start = row * nKeys;
    scaleRow(attention, start, nKeys, sumRow(attention, start, nKeys) / part);
  });
  return attention;
}

/** Decode differences of weights, between -1 and 1 in steps of 1/32767; rows are not rescaled. */
function decodeDifference(base64) {
  return Float32Array.from(new Int16Array(bytesOf(base64).buffer), (step) => step / 32767);
}

/** Decode the share of each query's attention inside the window, per head; 1 if none is sent, as without a window. */
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
