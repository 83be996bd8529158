// Rotate a square frame about its centre. Angles are in degrees, counter-clockwise, as in tigranet itself.

/** Return the same angle from 0 to below 360. */
export function normalized(degrees) {
  return ((degrees % 360) + 360) % 360;
}

/** Rotate a frame: multiples of 90 degrees only move pixels, other angles interpolate between four of them. */
export function rotated(frame, degrees) {
  const angle = normalized(degrees);
  const data = angle % 90 === 0 ? quarterTurns(frame, angle / 90) : bilinear(frame, angle);
  return { ...frame, data };
}

function quarterTurns({ side, channels, data }, turns) {
  const result = new Uint8Array(data.length);
  const last = side - 1;
  for (let y = 0, to = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const row = turns === 0 ? y : turns === 1 ? x : turns === 2 ? last - y : last - x;
      const column = turns === 0 ? x : turns === 1 ? last - y : turns === 2 ? last - x : y;
      const from = channels * (row * side + column);
      for (let channel = 0; channel < channels; channel++) result[to++] = data[from + channel];
    }
  }
  return result;
}

/** Bilinear interpolation. The background enters from outside the frame. */
function bilinear({ side, channels, data, background }, degrees) {
  const result = new Uint8Array(data.length);
  const cos = Math.cos((degrees * Math.PI) / 180);
  const sin = Math.sin((degrees * Math.PI) / 180);
  const centre = (side - 1) / 2;
  // A margin of one pixel of background, so that all four neighbours exist wherever a pixel of the frame is among them.
  const stride = channels * (side + 2);
  const framed = withMargin(side, channels, data, background);
  for (let y = 0, to = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const sourceX = centre + (x - centre) * cos - (y - centre) * sin;
      const sourceY = centre + (x - centre) * sin + (y - centre) * cos;
      const column = Math.floor(sourceX);
      const row = Math.floor(sourceY);
      if (column < -1 || row < -1 || column >= side || row >= side) {
        for (let channel = 0; channel < channels; channel++) result[to++] = background[channel];
        continue;
      }
      const right = sourceX - column;
      const down = sourceY - row;
      let from = (row + 1) * stride + (column + 1) * channels;
      for (let channel = 0; channel < channels; channel++, from++) {
        const upper = (1 - right) * framed[from] + right * framed[from + channels];
        const lower = (1 - right) * framed[from + stride] + right * framed[from + stride + channels];
        result[to++] = (1 - down) * upper + down * lower + 0.5;
      }
    }
  }
  return result;
}

function withMargin(side, channels, data, background) {
  const stride = channels * (side + 2);
  const framed = new Uint8Array(stride * (side + 2));
  for (let i = 0; i < framed.length; i++) framed[i] = background[i % channels];
  for (let y = 0; y < side; y++) {
    framed.set(data.subarray(y * side * channels, (y + 1) * side * channels), (y + 1) * stride + channels);
  }
  return framed;
}
