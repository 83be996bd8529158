// Write a frame as a PNG file: without loss, and in grey if the frame is grey, so that the server reads its exact pixels.

const SIGNATURE = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const GREY = 0;
const RGB = 2;

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, value) => {
  let crc = value;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? 0xedb88320 ^ (crc >>> 1) : crc >>> 1;
  return crc;
});

function crcOf(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

function chunk(kind, content) {
  const bytes = new Uint8Array(12 + content.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, content.length);
  bytes.set(new TextEncoder().encode(kind), 4);
  bytes.set(content, 8);
  view.setUint32(8 + content.length, crcOf(bytes.subarray(4, 8 + content.length)));
  return bytes;
}

async function compressed(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Return a PNG file as a Blob. */
export async function pngOf({ side, channels, data }) {
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, side);
  view.setUint32(4, side);
  header[8] = 8; // bits per value
  header[9] = channels === 1 ? GREY : RGB;
  const width = side * channels;
  const rows = new Uint8Array(side * (1 + width)); // every row begins with its filter: 0, none
  for (let row = 0; row < side; row++) {
    rows.set(data.subarray(row * width, (row + 1) * width), row * (1 + width) + 1);
  }
  const parts = [chunk("IHDR", header), chunk("IDAT", await compressed(rows)), chunk("IEND", new Uint8Array(0))];
  return new Blob([SIGNATURE, ...parts], { type: "image/png" });
}
