// All rows in two dimensions, drawn pixel by pixel: a hundred thousand points in a few milliseconds a frame. Of more rows
// the density is drawn, and the rows themselves where few enough are in view.

import { api } from "./api.js";
import { card, probability } from "./cards.js";
import * as dialog from "./dialog.js";
import { button, colourOf, fill, h, swatch, toast } from "./dom.js";
import { clustersNow, keep, nameOf, onChange, rowsOf, state } from "./state.js";
import { S } from "./strings.js";
import { tileLayer } from "./tiles.js";

const MOST_LINKS = 5000;
const CELLS = 128;
// Most rows that are loaded at once, and most rows in view that are drawn one by one if there are more.
const MOST_ROWS = 150_000;
const MOST_IN_VIEW = 30_000;
// Milliseconds that the map has been still when rows in view are loaded, and how much more than the view, each way.
const STILL = 200;
const MARGIN = 0.2;
// How far from the pointer a row may be, in pixels; by keyboard, from the middle of the map.
const REACH = 12;
const REACH_OF_KEYS = [12, 50, 200, 800];

export function map(view) {
  const canvas = h("canvas", { class: "points" });
  const over = h("canvas", { class: "over", tabindex: "0", role: "img", "aria-label": S.map.title });
  const side = h("aside", { class: "side" });
  const bar = h("div", { class: "bar" });
  const making = h("div", { class: "making", role: "status" });
  const legend = h("div", { class: "legend" });
  const stage = h("div", { class: "stage" }, canvas, over, making);
  fill(view, h("section", { class: "map" }, h("div", { class: "head" }, h("h1", {}, S.map.title), h("p", { class: "hint" }, S.map.hint), bar), stage, h("div", { class: "beside" }, side, legend)));

  let xy = new Float32Array();
  let ids = [];
  let clusters = new Int32Array();
  let answers = [];
  let grid = null;
  let scale = 1;
  let offset = [0, 0];
  let lasso = false;
  let links = true;
  let selected = new Set();
  let hovered = -1;
  let drawing = null;
  let dragging = null;
  let frame = 0;
  let image = null;
  let shades = new Uint32Array();
  let left = false;
  // With tiles, `box` is the part of the map whose rows are loaded: left, bottom, right, top. Without, all are.
  let tiles = null;
  let box = null;
  let shown = "pca";
  let sizes = new Map();

  // -- data ------------------------------------------------------------------------------------------------------------

  async function load() {
    fill(side, h("p", { class: "hint" }, S.working));
    try {
      const { rows } = await api.settings();
      tiles = rows > MOST_ROWS ? tileLayer((...place) => api.tile(shown, ...place), rows, () => (paint(), settle()), (error) => toast(error.message, "error")) : null;
      if (!tiles) {
        const [points, names] = await Promise.all([api.points("pca"), api.pointIds("pca")]);
        take(points, names);
      }
      await embed();
      await Promise.all([colours(), talk()]);
      paint();
      over.setAttribute("aria-label", S.map.label(rows));
      rest();
    } catch (error) {
      fill(side, h("p", { class: "warning" }, error.message));
    }
  }

  function take(points, names) {
    xy = points;
    ids = names;
    grid = index(xy);
  }

  // The map that was chosen; principal components while it is being made.
  let waiting = false;
  async function embed() {
    try {
      const found = tiles ? await api.tile(state.embedding, 0, 0, 0) : await api.points(state.embedding);
      waiting = found === null;
      if (tiles) {
        const next = waiting ? "pca" : state.embedding;
        if (next !== shown) await forget(next);
      } else if (!waiting && found.length === 2 * ids.length) take(found, ids);
      paint();
    } catch (error) {
      waiting = false;
      toast(error.message, "error");
    } finally {
      fill(making, waiting ? S.map.making : "");
    }
  }

  // Everything that depends on the embedding or on the rows is loaded again.
  async function forget(embedding = shown) {
    shown = embedding;
    tiles.clear();
    box = null;
    take(new Float32Array(), []);
    await choose(new Set());
  }

  async function colours() {
    const [found, now] = await Promise.all([tiles ? null : api.pointClusters("pca"), clustersNow()]);
    sizes = new Map(now.map((one) => [one.id, one.size]));
    if (tiles) {
      tiles.clear();
      await rowsInView(box);
    } else clusters = found;
    shade();
    const order = [...sizes].filter(([one]) => one >= 0).sort((a, b) => a[0] - b[0]);
    fill(legend, h("h2", {}, S.map.legend), tiles ? h("p", { class: "hint" }, S.map.density) : null, h("ul", {}, order.map(([one, size]) => h("li", {}, swatch(one), nameOf(one), h("span", { class: "count" }, size.toLocaleString())))));
  }

  // Loads the rows in a part of the map. Selected rows stay: nothing else is loaded until they are let go.
  async function rowsInView(wanted) {
    if (!wanted) return;
    const [points, names, groups] = await Promise.all([api.points(shown, wanted), api.pointIds(shown, wanted), api.pointClusters(shown, wanted)]);
    if (left || !points || points.length !== 2 * names.length || groups.length !== names.length) return;
    const kept = new Set([...selected].map((row) => ids[row]));
    box = wanted;
    clusters = groups;
    hovered = -1;
    take(points, names);
    selected = new Set(names.map((_, row) => row).filter((row) => kept.has(names[row])));
    shade();
    await talk();
  }

  const covered = () => !tiles || (box !== null && within(inView(), box));
  const within = (inner, outer) => inner[0] >= outer[0] && inner[1] >= outer[1] && inner[2] <= outer[2] && inner[3] <= outer[3];
  const inView = () => [...world(0, canvas.height), ...world(canvas.width, 0)];

  let still = 0;
  let settling = false;
  function settle() {
    clearTimeout(still);
    if (!tiles || left) return;
    still = setTimeout(async () => {
      if (settling || selected.size || drawing || dragging || covered()) return;
      const count = tiles.count(viewed());
      if (count === null || count > MOST_IN_VIEW) return;
      const [x0, y0, x1, y1] = inView();
      const [wide, high] = [MARGIN * (x1 - x0), MARGIN * (y1 - y0)];
      settling = true;
      await rowsInView([x0 - wide, y0 - high, x1 + wide, y1 + high]).catch((error) => toast(error.message, "error"));
      settling = false;
      if (!covered()) settle();
    }, STILL);
  }

  async function talk() {
    const place = new Map(ids.map((id, row) => [String(id), row]));
    const said = await api.answers();
    answers = said
      .slice(-MOST_LINKS)
      .filter((one) => one.answer !== "unsure" && one.right !== null)
      .map((one) => [place.get(String(one.left)), place.get(String(one.right)), one.answer === "same"])
      .filter(([from, to]) => from !== undefined && to !== undefined);
  }

  // -- drawing ---------------------------------------------------------------------------------------------------------

  const ratio = () => Math.min(devicePixelRatio || 1, 2);

  function size() {
    const box = stage.getBoundingClientRect();
    for (const one of [canvas, over]) {
      one.width = Math.max(1, Math.round(box.width * ratio()));
      one.height = Math.max(1, Math.round(box.height * ratio()));
    }
    paint();
  }

  const unit = () => 0.47 * Math.min(canvas.width, canvas.height) * scale;
  const screen = (row) => [canvas.width / 2 + (xy[2 * row] + offset[0]) * unit(), canvas.height / 2 - (xy[2 * row + 1] + offset[1]) * unit()];
  const viewed = () => ({ width: canvas.width, height: canvas.height, originX: canvas.width / 2 + offset[0] * unit(), originY: canvas.height / 2 - offset[1] * unit(), step: unit() });
  const world = (x, y) => [(x - canvas.width / 2) / unit() - offset[0], -(y - canvas.height / 2) / unit() - offset[1]];

  // Points are drawn anew when they move or change colour; what lies over them is cheap.
  let moved = false;
  function paint(points = true) {
    moved ||= points;
    if (!frame && !left) frame = requestAnimationFrame(draw);
  }

  function draw() {
    frame = 0;
    if (moved) {
      points();
      settle();
    }
    moved = false;
    overlay();
  }

  let behind = null;
  function points() {
    const context = canvas.getContext("2d");
    if (covered()) return context.putImageData(pointImage(context), 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    tiles.draw(context, viewed());
    if (!selected.size) return;
    behind ??= document.createElement("canvas");
    [behind.width, behind.height] = [canvas.width, canvas.height];
    behind.getContext("2d").putImageData(pointImage(context), 0, 0);
    context.drawImage(behind, 0, 0);
  }

  function pointImage(context) {
    const { width, height } = canvas;
    if (image?.width !== width || image.height !== height) image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer).fill(0);
    const many = ids.length > 20000;
    const radius = Math.max(1, Math.round(ratio() * (many ? 1 : ids.length > 2000 ? 2 : 4) * (tiles ? 1 : Math.min(2, Math.sqrt(scale)))));
    const disc = discOf(radius);
    const around = disc.map(([x, y]) => y * width + x);
    const step = unit();
    const [originX, originY] = [width / 2 + offset[0] * step, height / 2 - offset[1] * step];
    for (let row = 0; row < shades.length; row++) {
      const x = Math.round(originX + xy[2 * row] * step);
      const y = Math.round(originY - xy[2 * row + 1] * step);
      if (x < -radius || y < -radius || x >= width + radius || y >= height + radius) continue;
      if (x >= radius && y >= radius && x < width - radius && y < height - radius) {
        const place = y * width + x;
        for (const far of around) pixels[place + far] = shades[row];
      } else for (const [dx, dy] of disc) if (x + dx >= 0 && y + dy >= 0 && x + dx < width && y + dy < height) pixels[(y + dy) * width + x + dx] = shades[row];
    }
    return image;
  }

  // The colour of each point as a pixel holds it; of those not selected, a grey that lets the others stand out.
  function shade() {
    const of = new Map();
    const shadeOf = (cluster) => {
      const hex = parseInt(colourOf(cluster).slice(1), 16);
      return (0xff000000 | ((hex & 255) << 16) | (hex & 0xff00) | (hex >> 16)) >>> 0;
    };
    shades = new Uint32Array(ids.length);
    for (let row = 0; row < ids.length; row++) {
      const cluster = clusters[row];
      if (!of.has(cluster)) of.set(cluster, shadeOf(cluster));
      shades[row] = selected.size && !selected.has(row) ? 0x60a09890 : of.get(cluster);
    }
    paint();
  }

  function overlay() {
    const context = over.getContext("2d");
    context.clearRect(0, 0, over.width, over.height);
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink");
    if (links) {
      for (const same of [false, true]) {
        context.strokeStyle = ink;
        context.globalAlpha = same ? 0.75 : 0.4;
        context.lineWidth = ratio() * (same ? 1.4 : 1);
        context.setLineDash(same ? [] : [4 * ratio(), 4 * ratio()]);
        context.beginPath();
        for (const [from, to, is] of answers) {
          if (is !== same) continue;
          context.moveTo(...screen(from));
          context.lineTo(...screen(to));
        }
        context.stroke();
      }
      context.setLineDash([]);
      context.globalAlpha = 1;
    }
    for (const row of [hovered, selected.size === 1 ? [...selected][0] : -1].filter((one) => one >= 0)) {
      context.strokeStyle = ink;
      context.lineWidth = 2 * ratio();
      context.beginPath();
      context.arc(...screen(row), 7 * ratio(), 0, 7);
      context.stroke();
    }
    if (over.matches(":focus-visible")) {
      context.strokeStyle = ink;
      context.lineWidth = 2 * ratio();
      const [x, y, arm] = [over.width / 2, over.height / 2, 9 * ratio()];
      context.beginPath();
      context.moveTo(x - arm, y), context.lineTo(x + arm, y);
      context.moveTo(x, y - arm), context.lineTo(x, y + arm);
      context.stroke();
    }
    if (drawing) {
      context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
      context.lineWidth = 2 * ratio();
      context.beginPath();
      drawing.forEach(([x, y], place) => (place ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.closePath();
      context.stroke();
      context.globalAlpha = 0.08;
      context.fillStyle = context.strokeStyle;
      context.fill();
      context.globalAlpha = 1;
    }
  }

  // -- pointing --------------------------------------------------------------------------------------------------------

  const at = (event) => {
    const box = over.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * over.width, ((event.clientY - box.top) / box.height) * over.height];
  };

  function nearest(x, y, reach = REACH) {
    if (!grid) return -1;
    const [wx, wy] = world(x, y);
    let best = -1;
    let least = (reach * ratio()) ** 2;
    for (const row of near(grid, wx, wy, (reach * ratio()) / unit())) {
      const [sx, sy] = screen(row);
      const far = (sx - x) ** 2 + (sy - y) ** 2;
      if (far < least) [best, least] = [row, far];
    }
    return best;
  }

  // Without a mouse: the row nearest to the middle, which a cross marks while the map has the focus.
  const middle = () => REACH_OF_KEYS.reduce((found, reach) => (found >= 0 ? found : nearest(over.width / 2, over.height / 2, reach)), -1);
  for (const kind of ["focus", "blur"]) over.addEventListener(kind, () => paint(false));

  over.addEventListener("pointerdown", (event) => {
    over.setPointerCapture(event.pointerId);
    const [x, y] = at(event);
    if (lasso || event.shiftKey) drawing = [[x, y]];
    else dragging = { x, y, from: [...offset], moved: false };
  });
  over.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (drawing) {
      drawing.push([x, y]);
      return paint(false);
    }
    if (dragging) {
      dragging.moved ||= Math.hypot(x - dragging.x, y - dragging.y) > 4 * ratio();
      offset = [dragging.from[0] + (x - dragging.x) / unit(), dragging.from[1] - (y - dragging.y) / unit()];
      return paint();
    }
    const row = nearest(x, y);
    if (row === hovered) return;
    hovered = row;
    if (!selected.size) peek(row);
    paint(false);
  });
  over.addEventListener("pointerup", (event) => {
    if (drawing) {
      choose(inside(drawing, ids.length, screen));
      drawing = null;
    } else if (dragging && !dragging.moved) {
      const row = nearest(...at(event));
      choose(row < 0 ? new Set() : new Set([row]));
    }
    dragging = null;
    paint(false);
  });
  over.addEventListener("pointerleave", () => {
    hovered = -1;
    paint(false);
  });
  over.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * 0.0015), ...at(event));
    },
    { passive: false },
  );

  function zoom(by, x = over.width / 2, y = over.height / 2) {
    const before = world(x, y);
    scale = Math.min(tiles ? 5000 : 200, Math.max(0.5, scale * by));
    const now = world(x, y);
    offset = [offset[0] + now[0] - before[0], offset[1] + now[1] - before[1]];
    paint();
  }

  function everything() {
    scale = 1;
    offset = [0, 0];
    paint();
  }

  // -- beside the map --------------------------------------------------------------------------------------------------

  function rest() {
    fill(side, h("p", { class: "hint" }, S.map.nothing));
  }

  let peeking = 0;
  async function peek(row) {
    const turn = ++peeking;
    if (row < 0) return;
    const [found] = await rowsOf([ids[row]]).catch(() => []);
    if (turn === peeking && found && !left) fill(side, h("div", { class: "where" }, swatch(clusters[row]), nameOf(clusters[row]), probability(found)), card(found, null));
  }

  function toggle(row) {
    const rows = new Set(selected);
    if (!rows.delete(row) && row >= 0) rows.add(row);
    choose(rows);
  }

  async function choose(rows) {
    selected = rows;
    shade();
    if (rows.size === 0) return rest();
    if (rows.size === 1) return peek([...rows][0]);
    const counts = new Map();
    for (const row of rows) counts.set(clusters[row], (counts.get(clusters[row]) ?? 0) + 1);
    const of = counts.size === 1 ? [...counts.keys()][0] : null;
    const whole = of === null ? 0 : sizes.get(of) ?? 0;
    const can = of !== null && of >= 0 && rows.size < whole;
    fill(
      side,
      h("h2", { class: "selected" }, S.map.selected(rows.size)),
      h("p", { class: "hint" }, S.map.inClusters),
      h("ul", { class: "plain" }, [...counts].map(([one, count]) => h("li", {}, swatch(one), nameOf(one), h("span", { class: "count" }, count.toLocaleString())))),
      h("div", { class: "stack" }, button(S.map.splitOff, () => split(of, rows), { class: "primary", disabled: !can }), button(S.map.clear, () => choose(new Set()))),
      can ? null : h("p", { class: "hint" }, S.map.splitNeeds),
    );
  }

  async function split(cluster, rows) {
    if (await dialog.correct(S.map.splitOff, { kind: "split", cluster, rows: [...rows].map((row) => ids[row]) })) choose(new Set());
  }

  function choice() {
    const select = h("select", { "aria-label": S.map.embedding, title: S.map.embeddingHint }, Object.entries(S.map.embeddings).map(([value, text]) => h("option", { value, selected: value === state.embedding }, text)));
    select.addEventListener("change", () => {
      keep("embedding", select.value);
      embed();
    });
    return select;
  }

  function tools() {
    fill(
      bar,
      choice(),
      button([S.map.lasso, h("kbd", {}, "L")], () => ((lasso = !lasso), tools()), { "aria-pressed": String(lasso), class: lasso ? "on" : "", dataset: { tool: "lasso" } }),
      button(S.map.links, () => ((links = !links), tools(), paint(false)), { "aria-pressed": String(links), class: links ? "on" : "" }),
      button("+", () => zoom(1.4), { "aria-label": S.map.zoomIn }),
      button("−", () => zoom(1 / 1.4), { "aria-label": S.map.zoomOut }),
      button(S.map.all, everything),
    );
    over.classList.toggle("lasso", lasso);
  }

  const keysDown = (event) => {
    const step = 0.1 / scale;
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (moves[event.key]) offset = [offset[0] + moves[event.key][0], offset[1] + moves[event.key][1]];
    else if (event.key === "+" || event.key === "=") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else if (event.key === "0") everything();
    else if (event.key.toLowerCase() === "l") (lasso = !lasso), tools();
    else if (event.key === "Escape") choose(new Set());
    else if (event.key === "Enter") choose(new Set([middle()].filter((row) => row >= 0)));
    else if (event.key === " ") toggle(middle());
    else if (event.key === "?") dialog.keys();
    else return false;
    paint();
    return true;
  };

  const watch = new ResizeObserver(size);
  watch.observe(stage);
  const stopListening = onChange(async (kind) => {
    if (kind === "jobs" && waiting && !left) embed();
    if (kind === "clusters" && (tiles || ids.length) && !left) {
      try {
        const { rows } = await api.settings();
        if (tiles ? rows !== tiles.rows : rows !== ids.length) return load();
        await Promise.all([colours(), talk()]);
        paint();
      } catch (error) {
        toast(error.message, "error");
      }
    }
  });
  tools();
  load();
  return {
    keysDown,
    leave() {
      left = true;
      clearTimeout(still);
      watch.disconnect();
      stopListening();
    },
  };
}

function discOf(radius) {
  const found = [];
  for (let y = -radius; y <= radius; y++) for (let x = -radius; x <= radius; x++) if (x * x + y * y <= radius * radius + 0.5) found.push([x, y]);
  return found;
}

// Rows by cell of a square grid, so that what is near the pointer is found at once.
function index(xy) {
  const cells = new Map();
  for (let row = 0; row < xy.length / 2; row++) {
    const key = cellOf(xy[2 * row]) * CELLS + cellOf(xy[2 * row + 1]);
    if (cells.has(key)) cells.get(key).push(row);
    else cells.set(key, [row]);
  }
  return cells;
}

const cellOf = (value) => Math.min(CELLS - 1, Math.max(0, Math.floor(((value + 1) / 2) * CELLS)));

function* near(cells, x, y, far) {
  for (let i = cellOf(x - far); i <= cellOf(x + far); i++) for (let j = cellOf(y - far); j <= cellOf(y + far); j++) yield* cells.get(i * CELLS + j) ?? [];
}

// Rows whose point lies within a closed line, by counting crossings.
function inside(line, count, screen) {
  const found = new Set();
  if (line.length < 3) return found;
  const xs = line.map(([x]) => x);
  const ys = line.map(([, y]) => y);
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  for (let row = 0; row < count; row++) {
    const [x, y] = screen(row);
    if (x < left || x > right || y < top || y > bottom) continue;
    let odd = false;
    for (let i = 0, j = line.length - 1; i < line.length; j = i++) if (ys[i] > y !== ys[j] > y && x < ((xs[j] - xs[i]) * (y - ys[i])) / (ys[j] - ys[i]) + xs[i]) odd = !odd;
    if (odd) found.add(row);
  }
  return found;
}
