// Small pictures of files, in a canvas.

import { preview } from "./server.js";

/** Side length in CSS pixels. */
const SIDE = 44;

/** Draw an image file. A file that cannot be decoded leaves the canvas empty. */
export async function drawThumbnail(canvas, file) {
  canvas.width = canvas.height = Math.round(SIDE * devicePixelRatio);
  try {
    const bitmap = await createImageBitmap(file).catch(async () => createImageBitmap(await preview(file)));
    const scale = canvas.width / Math.max(bitmap.width, bitmap.height);
    const [width, height] = [bitmap.width * scale, bitmap.height * scale];
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(bitmap, (canvas.width - width) / 2, (canvas.height - height) / 2, width, height);
    bitmap.close();
  } catch {
    canvas.classList.add("empty");
  }
}
