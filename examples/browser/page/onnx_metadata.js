// The metadata of an ONNX file. onnxruntime-web has no function that returns them.
//
// An ONNX file is a protocol buffer: a sequence of fields, each with a key (8 * number + wire type) and a value. The
// fields 14 are the metadata. Each holds a key in its field 1 and a value in its field 2. Other fields are skipped.

const METADATA = 14;
const KEY = 1;
const VALUE = 2;

/** Return the metadata of an ONNX file as a Map of strings. */
export function readMetadata(bytes) {
  const metadata = new Map();
  for (const [number, content] of fields(bytes)) {
    if (number !== METADATA) continue;
    const entry = new Map(fields(content));
    metadata.set(text(entry.get(KEY)), text(entry.get(VALUE)));
  }
  return metadata;
}

function text(bytes = new Uint8Array()) {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

/** Yield the number and the content of each field. The content of numbers is not used and left empty. */
function* fields(bytes) {
  let position = 0;

  function readNumber() {
    let value = 0;
    for (let scale = 1; scale < 2 ** 64; scale *= 128) {
      if (position >= bytes.length) break;
      const byte = bytes[position++];
      value += (byte % 128) * scale;
      if (byte < 128) return value;
    }
    throw new Error("this is not an ONNX file");
  }

  while (position < bytes.length) {
    const key = readNumber();
    const lengths = { 0: () => (readNumber(), 0), 1: () => 8, 2: readNumber, 5: () => 4 };
    const length = lengths[key % 8]?.();
    if (length === undefined || position + length > bytes.length) throw new Error("this is not an ONNX file");
    yield [Math.floor(key / 8), bytes.subarray(position, position + length)];
    position += length;
  }
}
