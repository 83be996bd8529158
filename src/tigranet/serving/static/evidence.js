// Evidence maps in colour: orange speaks for the class, blue against it, as in 'tigranet predict --explain'.

const FOR = [213, 94, 0];
const AGAINST = [0, 114, 178];
/** Evidence at or above this quantile of the magnitudes has the full colour. */
const STRONG_QUANTILE = 0.99;
const OPACITY = 0.85;
/** The image below the colours, in grey and without pure black and white, on which colours would be hard to see. */
const BASE_FILTER = "grayscale(1) contrast(0.63) brightness(1.08)";

/** Return a canvas with one pixel for each number of a map. */
export function evidenceCanvas(rows) {
  const size = rows.length;
  const values = rows.flat();
  const strong = strongMagnitude(values);
  const image = new ImageData(size, size);
  values.forEach((value, i) => {
    image.data.set(value > 0 ? FOR : AGAINST, 4 * i);
    image.data[4 * i + 3] = Math.round(255 * OPACITY * Math.min(Math.abs(value) / strong, 1));
  });
  const canvas = new OffscreenCanvas(size, size);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function strongMagnitude(values) {
  const magnitudes = Float64Array.from(values, Math.abs).sort();
  return magnitudes[Math.floor(STRONG_QUANTILE * (magnitudes.length - 1))] || magnitudes.at(-1) || 1;
}

/** Draw an image over the whole of a square canvas, as the background of a map. */
export function drawBase(context, picture) {
  context.filter = BASE_FILTER;
  context.drawImage(picture, 0, 0, context.canvas.width, context.canvas.height);
  context.filter = "none";
}

/** Draw a map over the whole of a square canvas, rotated by an angle in degrees, counter-clockwise. */
export function drawRotated(context, picture, degrees) {
  const side = context.canvas.width;
  context.save();
  context.translate(side / 2, side / 2);
  context.rotate((-degrees * Math.PI) / 180);
  context.drawImage(picture, -side / 2, -side / 2, side, side);
  context.restore();
}
