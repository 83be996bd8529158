// Images as arrays: red, green and blue of each pixel, from 0 to 255, row by row.
//
// A square image is prepared as tigranet prepares its training images, so that the network sees what it was trained on.

const CHANNELS = 3;

/** Decode an image file. Transparent pixels become black. */
export async function decode(file) {
  const bitmap = await createImageBitmap(file, { colorSpaceConversion: "none" });
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d", { alpha: false });
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const { data } = context.getImageData(0, 0, width, height);
  const pixels = new Uint8Array(width * height * CHANNELS);
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < CHANNELS; c++) pixels[CHANNELS * i + c] = data[4 * i + c];
  }
  return { pixels, width, height };
}

/**
 * Scale an image so that its longer side becomes `size` and equal margins are left along the other side, and centre it in
 * a square of the median of its border.
 */
export function letterbox(image, size) {
  const scale = size / Math.max(image.width, image.height);
  const margin = (side) => Math.min(roundHalfToEven((size - side * scale) / 2), Math.floor((size - 1) / 2));
  const [left, top] = [image.width, image.height].map(margin);
  const [width, height] = [size - 2 * left, size - 2 * top];
  const scaled = resize(image, width, height);
  const background = medianOfBorder(scaled);
  const square = blank(size, background);
  for (let y = 0; y < height; y++) {
    const row = scaled.pixels.subarray(CHANNELS * width * y, CHANNELS * width * (y + 1));
    square.set(row, CHANNELS * (size * (top + y) + left));
  }
  return { pixels: square, width: size, height: size, background };
}

/** Turn a square image counter-clockwise about its centre, by bilinear interpolation. Quarter turns are exact. */
export function turn({ pixels, width: size, height, background }, degrees) {
  const [cos, sin] = degrees % 90 ? [Math.cos, Math.sin].map((f) => f((degrees * Math.PI) / 180)) : quarterTurn(degrees);
  const centre = (size - 1) / 2;
  const turned = blank(size, background);
  const at = (y, x, c) => (y < 0 || x < 0 || y >= size || x >= size ? background[c] : pixels[CHANNELS * (size * y + x) + c]);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const sourceX = centre + cos * (x - centre) - sin * (y - centre);
      const sourceY = centre + sin * (x - centre) + cos * (y - centre);
      const [left, top] = [Math.floor(sourceX), Math.floor(sourceY)];
      const [right, below] = [sourceX - left, sourceY - top];
      for (let c = 0; c < CHANNELS; c++) {
        turned[CHANNELS * (size * y + x) + c] =
          (1 - below) * ((1 - right) * at(top, left, c) + right * at(top, left + 1, c)) +
          below * ((1 - right) * at(top + 1, left, c) + right * at(top + 1, left + 1, c));
      }
    }
  }
  return { pixels: turned, width: size, height, background };
}

/** Round to 8 bits, as the model reads them. */
export function toBytes({ pixels }) {
  return Uint8Array.from(pixels, (value) => Math.floor(value + 0.5));
}

/** Return an image for a canvas. */
export function toImageData({ pixels, width, height }) {
  const data = new Uint8ClampedArray(4 * width * height).fill(255);
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < CHANNELS; c++) data[4 * i + c] = pixels[CHANNELS * i + c];
  }
  return new ImageData(data, width, height);
}

/** Scale both axes. Each new pixel is the mean of the pixels it covers, weighted by a triangle, as Pillow computes it. */
function resize(image, width, height) {
  if (width === image.width && height === image.height) return image;
  const columns = alongAxis(image.pixels, image.height, image.width, width, CHANNELS);
  return { pixels: alongAxis(columns, 1, image.height, height, CHANNELS * width), width, height };
}

/** Scale the middle axis of an array of the shape (count, length, stride) to a new length. */
function alongAxis(values, count, length, newLength, stride) {
  const scale = length / newLength;
  const support = Math.max(scale, 1);
  const result = new Float32Array(count * newLength * stride);
  for (let i = 0; i < newLength; i++) {
    const centre = (i + 0.5) * scale;
    const first = Math.max(0, Math.floor(centre - support + 0.5));
    const last = Math.min(length, Math.floor(centre + support + 0.5));
    const weights = Array.from({ length: last - first }, (_, k) =>
      Math.max(0, 1 - Math.abs((first + k + 0.5 - centre) / support)),
    );
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    for (let n = 0; n < count; n++) {
      for (let s = 0; s < stride; s++) {
        let sum = 0;
        for (let k = 0; k < weights.length; k++) sum += weights[k] * values[stride * (length * n + first + k) + s];
        result[stride * (newLength * n + i) + s] = sum / total;
      }
    }
  }
  return result;
}

function blank(size, colour) {
  return Float32Array.from({ length: size * size * CHANNELS }, (_, i) => colour[i % CHANNELS]);
}

function medianOfBorder({ pixels, width, height }) {
  const columns = Array.from({ length: width }, (_, x) => x);
  const rows = Array.from({ length: height }, (_, y) => y * width);
  const border = [
    ...columns, ...columns.map((x) => (height - 1) * width + x),
    ...rows, ...rows.map((start) => start + width - 1),
  ];
  return Array.from({ length: CHANNELS }, (_, c) => {
    const sorted = border.map((i) => pixels[CHANNELS * i + c]).sort((a, b) => a - b);
    return (sorted[sorted.length / 2 - 1] + sorted[sorted.length / 2]) / 2; // the number of values is even
  });
}

function quarterTurn(degrees) {
  const quarters = (((degrees / 90) % 4) + 4) % 4;
  return [[1, 0], [0, 1], [-1, 0], [0, -1]][quarters];
}

function roundHalfToEven(value) {
  const rounded = Math.round(value);
  return value % 1 === 0.5 && rounded % 2 === 1 ? rounded - 1 : rounded;
}
