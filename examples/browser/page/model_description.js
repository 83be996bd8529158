// What the page has to know about the model, from the metadata of its ONNX file.

import { readMetadata } from "./onnx_metadata.js";

/** Return the class names and the image size of a model, after checking that it reads pixels and returns probabilities. */
export function describeModel(bytes) {
  const metadata = readMetadata(bytes);
  const expected = { layout: "NHWC", value_range: "[0, 255]", channels: "3", output: "probabilities" };
  for (const [key, value] of Object.entries(expected)) {
    if (metadata.get(key) !== value) {
      const received = metadata.has(key) ? `'${metadata.get(key)}'` : "none";
      throw new Error(
        `expected the metadata ${key} to be '${value}', got ${received}: ` +
          "export a network for grey or colour images with 'tigranet export --preprocess'",
      );
    }
  }
  const size = Number(metadata.get("image_size"));
  if (!(size > 0)) throw new Error("the model has no image size: train it with 'tigranet train'");
  return { classNames: JSON.parse(metadata.get("class_names")), size };
}
