// The frame: the pixels of an image file in a square, which is what rotates.

import { preview } from "./server.js";

/** Larger images are reduced to this number of pixels per side. */
export const MAX_SIDE = 512;

/**
 * Decode an image file.
 *
 * @returns {Promise<{side, channels, data, background, width, height, notes}>} The square frame: `data` has
 *     side * side * channels bytes, one channel for grey images and three for others. `background` is the median of the
 *     border, and `notes` tells what differs from the file.
 */
export async function frameOf(file) {
  const notes = [];
  let bitmap;
  try {
    bitmap = await decode(file);
  } catch {
    bitmap = await decode(await preview(file));
    notes.push("This browser does not know the format. The server has converted it to 8 bits.");
  }
  const original = { width: bitmap.width, height: bitmap.height };
  const scale = Math.min(1, MAX_SIDE / Math.max(bitmap.width, bitmap.height));
  const width = Math.max(1, Math.round(bitmap.width * scale));
  const height = Math.max(1, Math.round(bitmap.height * scale));
  if (scale < 1) notes.push(`Reduced to ${width} × ${height} pixels before it is rotated.`);
  const pixels = pixelsOf(bitmap, width, height);
  bitmap.close();
  return { ...squareOf(pixels, width, height), ...original, notes };
}

function decode(blob) {
  return createImageBitmap(blob, { colorSpaceConversion: "none" });
}

/** Return the pixels in RGBA on a black background, as the server reads transparent images. */
function pixelsOf(bitmap, width, height) {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "black";
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  return context.getImageData(0, 0, width, height).data;
}

/** Centre an image in a square of the median of its border. */
export function squareOf(rgba, width, height) {
  const channels = isGrey(rgba) ? 1 : 3;
  const side = Math.max(width, height);
  const background = borderMedian(rgba, width, height, channels);
  const data = new Uint8Array(side * side * channels);
  for (let channel = 0; channel < channels; channel++) {
    for (let i = channel; i < data.length; i += channels) data[i] = background[channel];
  }
  const left = Math.floor((side - width) / 2);
  const top = Math.floor((side - height) / 2);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const from = 4 * (y * width + x);
      const to = channels * ((y + top) * side + x + left);
      for (let channel = 0; channel < channels; channel++) data[to + channel] = rgba[from + channel];
    }
  }
  return { side, channels, data, background };
}

function isGrey(rgba) {
  for (let i = 0; i < rgba.length; i += 4) {
    if (rgba[i] !== rgba[i + 1] || rgba[i] !== rgba[i + 2]) return false;
  }
  return true;
}

function borderMedian(rgba, width, height, channels) {
  const positions = [];
  for (let x = 0; x < width; x++) positions.push(x, (height - 1) * width + x);
  for (let y = 0; y < height; y++) positions.push(y * width, y * width + width - 1);
  return Array.from({ length: channels }, (_, channel) => {
    const values = positions.map((position) => rgba[4 * position + channel]).sort((a, b) => a - b);
    return Math.round((values[(values.length - 1) >> 1] + values[values.length >> 1]) / 2);
  });
}

/** Return a frame with three channels. */
export function inColour(frame) {
  if (frame.channels === 3) return frame;
  const data = new Uint8Array(3 * frame.data.length);
  for (let i = 0; i < data.length; i++) data[i] = frame.data[Math.floor(i / 3)];
  return { ...frame, channels: 3, data };
}

/** Return a canvas that shows a frame. */
export function canvasOf(frame) {
  const canvas = new OffscreenCanvas(frame.side, frame.side);
  const image = new ImageData(frame.side, frame.side);
  const { data } = inColour(frame);
  for (let from = 0, to = 0; to < image.data.length; from += 3, to += 4) {
    image.data[to] = data[from];
    image.data[to + 1] = data[from + 1];
    image.data[to + 2] = data[from + 2];
    image.data[to + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
