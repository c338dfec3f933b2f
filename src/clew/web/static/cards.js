// Rows as people read them: a table of fields, texts, pictures, sounds, small plots; differences marked.

import { api } from "./api.js";
import { h } from "./dom.js";
import { S } from "./strings.js";

const IMAGE = /\.(png|jpe?g|gif|webp|bmp|avif)$/i;
const SOUND = /\.(wav|mp3|ogg|flac|m4a)$/i;
const LONG_TEXT = 60;
const LEAST_SERIES = 5;
const DOUBTFUL = 0.8;

export function kindOf(value) {
  if (numbersOf(value) !== null) return "series";
  if (typeof value !== "string") return "plain";
  if (IMAGE.test(value)) return "image";
  if (SOUND.test(value)) return "sound";
  return value.length > LONG_TEXT || value.split(/\s+/).length > 6 ? "text" : "plain";
}

// The numbers of a list, or of a cell that holds one; null for anything else.
function numbersOf(value) {
  let list = value;
  if (typeof value === "string" && value.startsWith("[")) {
    try {
      list = JSON.parse(value);
    } catch {
      return null;
    }
  }
  return Array.isArray(list) && list.length >= LEAST_SERIES && list.every((one) => typeof one === "number" || one === null) ? list : null;
}

export function shown(value) {
  if (value === null || value === undefined || value === "") return S.empty;
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(5)));
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

// A card for a row; beside `other`, what differs is marked and equal cells are dimmed. Where one of the two has no value,
// nothing is marked.
export function card(row, other, attributes) {
  const columns = told(row).map(([column]) => column);
  const big = [];
  const fields = [];
  for (const column of columns) {
    const value = row.values[column];
    const against = other?.values[column];
    const beside = other !== undefined && other !== null;
    const none = row.missing?.includes(column);
    const alike = JSON.stringify(value ?? null) === JSON.stringify(against ?? null) || (row.dates?.[column] !== undefined && row.dates[column] === other?.dates?.[column]);
    const differs = beside && !alike && !none && !other.missing?.includes(column);
    const kind = kindOf(value);
    if (kind === "plain") fields.push(h("tr", { class: differs ? "differs" : beside && (alike || none) ? "equal" : "" }, h("th", { scope: "row" }, column), h("td", { dir: "auto" }, (differs && letters(value, against)) || mark(shown(value), differs, howMuch(value, against)))));
    else big.push(block(kind, row.id, column, value, against));
  }
  return h(
    "article",
    { class: "card", ...attributes },
    h("div", { class: "card-id" }, S.row(row.id)),
    big,
    fields.length ? h("table", { class: "fields" }, h("tbody", {}, fields)) : null,
  );
}

// The pictures of a row, on their way: a card that is shown later has them even if the server is away then.
export const pictures = (row) => told(row).filter(([, value]) => kindOf(value) === "image").map(([column]) => h("img", { src: api.fileOf(row.id, column) }));

// The columns that say more than the card's title. A cell that repeats the id is left out, unless it names a picture or a sound: then
// the last such cell is shown.
function told(row) {
  const entries = Object.entries(row.values);
  const repeats = entries.filter(([, value]) => String(value) === String(row.id));
  const file = ["image", "sound"].includes(kindOf(row.id)) ? repeats.at(-1) : undefined;
  return entries.filter((one) => one === file || !repeats.includes(one));
}

function mark(text, differs, much) {
  return differs ? h("mark", { style: { "--much": `${Math.round(100 * much)}%` } }, text) : text;
}

// From a quarter for numbers that nearly agree to 1; other values differ or not.
function howMuch(value, other) {
  if (typeof value !== "number" || typeof other !== "number") return 1;
  return Math.max(0.25, Math.min(1, Math.abs(value - other) / (Math.max(Math.abs(value), Math.abs(other)) || 1) / 0.6));
}

function block(kind, id, column, value, against) {
  if (kind === "image") return figure(column, h("img", { src: api.fileOf(id, column), alt: `${column}: ${value}`, loading: "lazy" }));
  if (kind === "sound") return figure(column, h("audio", { src: api.fileOf(id, column), controls: true, preload: "metadata" }));
  if (kind === "series") return figure(column, plot(numbersOf(value), column, numbersOf(against)));
  return h("div", { class: "text" }, h("div", { class: "column" }, column), h("p", { dir: "auto" }, typeof against === "string" ? marked(value, against) : value));
}

function figure(column, content) {
  return h("figure", {}, content, h("figcaption", {}, column));
}

// Words of a text that are not in the same place of the other one, by a longest common subsequence.
export function marked(text, other) {
  const left = text.split(/(\s+)/);
  const right = other.split(/\s+/);
  const kept = common(left, right);
  const parts = [];
  left.forEach((word, place) => {
    const differs = word.trim() !== "" && !kept.has(place);
    const last = parts.at(-1);
    if (last && last.differs === differs) last.text += word;
    else if (last && word.trim() === "") last.text += word;
    else parts.push({ differs, text: word });
  });
  return parts.map((part) => (part.differs ? h("mark", {}, part.text) : part.text));
}

// Letters of a short text that are not in the other one; none if only upper and lower case differ. null where that tells
// nothing: few letters are shared, or only signs differ. Then the whole cell is marked.
function letters(text, other) {
  if (typeof text !== "string" || typeof other !== "string") return null;
  if (text.toLowerCase() === other.toLowerCase()) return [text];
  const [left, right] = [[...text], [...other]];
  if (Math.max(left.length, right.length) > MOST_LETTERS) return null;
  const kept = common(left, right);
  const isLetter = (letter) => /[\p{L}\p{N}]/u.test(letter);
  const counted = Math.max(left.filter(isLetter).length, right.filter(isLetter).length);
  if (kept.size < 0.6 * counted || (kept.size === counted && left.length >= right.length)) return null;
  const parts = [];
  left.forEach((letter, place) => {
    const differs = isLetter(letter) && !kept.has(place);
    const last = parts.at(-1);
    if (last && last.differs === differs) last.text += letter;
    else parts.push({ differs, text: letter });
  });
  return parts.map((part) => (part.differs ? h("mark", { class: "letters" }, part.text) : part.text));
}

const MOST_WORDS = 600;
const MOST_LETTERS = 80;

function common(left, right) {
  const plain = (word) => word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const places = left.map((word, place) => [plain(word), place]).filter(([word]) => word);
  const words = right.map(plain).filter(Boolean);
  if (places.length > MOST_WORDS || words.length > MOST_WORDS) {
    const there = new Set(words);
    return new Set(places.filter(([word]) => there.has(word)).map(([, place]) => place));
  }
  const width = words.length + 1;
  const best = new Uint16Array((places.length + 1) * width);
  for (let i = places.length - 1; i >= 0; i--)
    for (let j = words.length - 1; j >= 0; j--)
      best[i * width + j] = places[i][0] === words[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
  const kept = new Set();
  for (let i = 0, j = 0; i < places.length && j < words.length; ) {
    if (places[i][0] === words[j]) {
      kept.add(places[i][1]);
      i++, j++;
    } else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
    else j++;
  }
  return kept;
}

const SVG = "http://www.w3.org/2000/svg";

// A list of numbers as a line. Beside another one both have the same scale, and the other is drawn thin behind it.
function plot(values, column, other = null) {
  const both = [...values, ...(other ?? [])].filter((value) => value !== null);
  const low = both.reduce((least, value) => Math.min(least, value), Infinity);
  const high = both.reduce((most, value) => Math.max(most, value), -Infinity);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 300 90");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", S.plot(column, values.length, shown(low), shown(high)));
  for (const [list, kind] of [[other, "other"], [values, "own"]]) {
    if (list === null) continue;
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("class", kind);
    line.setAttribute("d", path(list, low, high - low || 1));
    line.setAttribute("vector-effect", "non-scaling-stroke");
    svg.append(line);
  }
  return svg;
}

// Missing values leave a gap.
function path(values, low, span) {
  let pen = "M";
  return values
    .map((value, place) => {
      const step = value === null ? "" : `${pen}${((300 * place) / (values.length - 1)).toFixed(1)},${(85 - (80 * (value - low)) / span).toFixed(1)}`;
      pen = value === null ? "M" : "L";
      return step;
    })
    .join("");
}

// The probability of a row's cluster, where the method has one; doubtful ones stand out.
export function probability(row) {
  if (row.probability === null || row.probability === undefined) return null;
  return h("span", { class: row.probability < DOUBTFUL ? "probability doubtful" : "probability", title: S.probability(percent(row.probability)) }, percent(row.probability));
}

// Rounded down, so that 100 % is said only of what is sure.
export const percent = (share) => `${share > 0.9995 ? 100 : Math.floor(100 * share)} %`;

// A row in one small tile, for lists and contact sheets.
export function tile(row) {
  const entries = told(row);
  const picture = entries.find(([, value]) => kindOf(value) === "image");
  const text = entries.find(([, value]) => kindOf(value) === "text");
  const series = entries.find(([, value]) => kindOf(value) === "series");
  const facts = entries.filter(([, value]) => kindOf(value) === "plain").slice(0, text || picture || series ? 2 : 5);
  return [
    h("div", { class: "card-id", title: String(row.id) }, S.row(row.id)),
    picture ? h("img", { src: api.fileOf(row.id, picture[0]), alt: shown(picture[1]), loading: "lazy" }) : null,
    text ? h("p", { class: "tile-text", dir: "auto" }, text[1]) : null,
    series ? plot(numbersOf(series[1]), series[0]) : null,
    h("dl", {}, facts.map(([column, value]) => h("div", {}, h("dt", {}, column), h("dd", { dir: "auto" }, shown(value))))),
  ];
}
