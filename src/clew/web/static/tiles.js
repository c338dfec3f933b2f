// The density of more rows than a page can draw one by one: tiles of 256 × 256 bins, coloured by their commonest cluster.

import { colourOf } from "./dom.js";

const BINS = 256;
const DEEPEST = 16;
const AT_ONCE = 4;
const MOST_TILES = 200;

// `load(level, column, row)` gives the bytes of a tile, or null while the map is being made; `changed` is called when
// one has come. A view is { width, height, originX, originY, step }: the point (x, y) of the map, from -1 to 1, is
// drawn at (originX + x step, originY - y step).
export function tileLayer(load, rows, changed, failed) {
  const tiles = new Map();
  let wanted = [];
  let running = 0;
  let age = 0;

  const levelOf = (view) => Math.min(DEEPEST, Math.max(0, Math.floor(Math.log2((2 * view.step) / BINS))));

  function visible(view) {
    const level = levelOf(view);
    const n = 2 ** level;
    const side = (2 * view.step) / n;
    const [left, bottom] = [view.originX - view.step, view.originY + view.step];
    const clip = (value) => Math.min(n - 1, Math.max(0, value));
    const found = [];
    if (left > view.width || left + 2 * view.step < 0 || bottom < 0 || bottom - 2 * view.step > view.height) return found;
    for (let row = clip(Math.floor((bottom - view.height) / side)); row <= clip(Math.floor(bottom / side)); row++)
      for (let column = clip(Math.floor(-left / side)); column <= clip(Math.floor((view.width - left) / side)); column++)
        found.push({ key: `${level}/${column}/${row}`, level, column, row, x: left + column * side, y: bottom - (row + 1) * side, side });
    return found;
  }

  async function pump() {
    while (running < AT_ONCE && wanted.length) {
      const { key, level, column, row } = wanted.shift();
      if (tiles.has(key)) continue;
      const born = age;
      tiles.set(key, null);
      running++;
      load(level, column, row)
        .then((bytes) => {
          if (born !== age) return;
          if (bytes === null) tiles.delete(key);
          else {
            tiles.set(key, painted(bytes, level));
            if (tiles.size > MOST_TILES) tiles.delete([...tiles.keys()].find((one) => one !== "0/0/0" && tiles.get(one)));
            changed();
          }
        })
        .catch((error) => born === age && failed(error))
        .finally(() => (running--, pump()));
    }
  }

  function painted(bytes, level) {
    const n = bytes.byteLength / 10;
    const [counts, clusters, bins] = [new Uint32Array(bytes, 0, n), new Int32Array(bytes, 4 * n, n), new Uint16Array(bytes, 8 * n, n)];
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = BINS;
    const context = canvas.getContext("2d");
    const image = context.createImageData(BINS, BINS);
    const pixels = new Uint32Array(image.data.buffer);
    // A bin with twenty times the mean number of rows of its level is drawn in the full colour.
    const full = Math.log1p(Math.max(4, (20 * rows) / (BINS * BINS * 4 ** level)));
    for (let one = 0; one < n; one++) {
      const hex = parseInt(colourOf(clusters[one]).slice(1), 16);
      const opacity = Math.round(255 * Math.min(1, 0.25 + (0.75 * Math.log1p(counts[one])) / full));
      const y = BINS - 1 - (bins[one] >> 8);
      pixels[y * BINS + (bins[one] & 255)] = ((opacity << 24) | ((hex & 255) << 16) | (hex & 0xff00) | (hex >> 16)) >>> 0;
    }
    context.putImageData(image, 0, 0);
    return { canvas, counts, bins };
  }

  // The nearest coarser tile that is here stands in for one that is not.
  function drawTile(context, { key, level, column, row, x, y, side }) {
    const [left, top] = [Math.round(x), Math.round(y)];
    const [width, height] = [Math.round(x + side) - left, Math.round(y + side) - top];
    if (tiles.get(key)) return context.drawImage(tiles.get(key).canvas, left, top, width, height);
    for (let up = 1; up <= level; up++) {
      const above = tiles.get(`${level - up}/${column >> up}/${row >> up}`);
      if (!above) continue;
      const part = BINS / 2 ** up;
      const [inX, inY] = [(column & (2 ** up - 1)) * part, BINS - ((row & (2 ** up - 1)) + 1) * part];
      return context.drawImage(above.canvas, inX, inY, part, part, left, top, width, height);
    }
  }

  return {
    rows,
    draw(context, view) {
      const shown = visible(view);
      wanted = shown.filter(({ key }) => !tiles.has(key));
      if (!tiles.has("0/0/0")) wanted.unshift({ key: "0/0/0", level: 0, column: 0, row: 0 });
      pump();
      context.imageSmoothingEnabled = false;
      for (const tile of shown) drawTile(context, tile);
    },
    // Rows in view; null while tiles are missing.
    count(view) {
      let total = 0;
      for (const { key, x, y, side } of visible(view)) {
        const tile = tiles.get(key);
        if (!tile) return null;
        const size = side / BINS;
        for (let one = 0; one < tile.bins.length; one++) {
          const [left, top] = [x + (tile.bins[one] & 255) * size, y + side - ((tile.bins[one] >> 8) + 1) * size];
          if (left < view.width && left + size > 0 && top < view.height && top + size > 0) total += tile.counts[one];
        }
      }
      return total;
    },
    clear() {
      age++;
      tiles.clear();
      wanted = [];
    },
  };
}
