// What several views share: who is here, how things stand, rows and clusters seen before.

import { api, link } from "./api.js";
import * as storage from "./storage.js";
import { S } from "./strings.js";

const listeners = new Set();
export const state = {
  annotator: storage.read("clew-annotator") ?? "me",
  opinion: storage.read("clew-opinion") === "yes",
  embedding: storage.read("clew-embedding") ?? "pca",
  progress: null,
  fit: -1,
  names: new Map(),
};

export function keep(name, value) {
  state[name] = value;
  storage.write(`clew-${name}`, value === true ? "yes" : value === false ? "no" : value);
}

export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(kind) {
  for (const listener of listeners) listener(kind);
}

// Milliseconds before a stream that the server refused is asked for again; a broken one comes back by itself.
const LISTEN_AGAIN = 3000;
let source = null;
let timer = 0;

export function listen() {
  clearTimeout(timer);
  source?.close();
  source = new EventSource("/api/events");
  source.addEventListener("progress", (event) => {
    const now = JSON.parse(event.data);
    if (now.project !== link.project) return void api.progress().catch(() => {}); // finds out what is served here now
    state.progress = now;
    tell("progress");
  });
  source.addEventListener("clusters", (event) => {
    state.fit = JSON.parse(event.data).fit;
    rowCache.clear();
    tell("clusters");
  });
  source.addEventListener("jobs", () => tell("jobs"));
  source.addEventListener("open", () => {
    api.progress().catch(() => {});
    tell("online");
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) timer = setTimeout(listen, LISTEN_AGAIN);
    api.progress().catch(() => {}); // finds out why
  });
}

// -- rows ------------------------------------------------------------------------------------------------------------

const rowCache = new Map();
const MOST_CACHED = 2000;
const AT_ONCE = 100;

export async function rowsOf(ids) {
  const wanted = [...new Set(ids.map(String))].filter((id) => !rowCache.has(id));
  for (let start = 0; start < wanted.length; start += AT_ONCE) {
    const some = wanted.slice(start, start + AT_ONCE);
    const found = await api.rows(some);
    if (rowCache.size > MOST_CACHED) rowCache.clear();
    found.forEach((row, place) => rowCache.set(some[place], row));
  }
  // A clear between two fetches may have dropped some: ask once more for those alone.
  const missing = ids.map(String).filter((id) => !rowCache.has(id));
  if (missing.length) (await api.rows([...new Set(missing)].slice(0, AT_ONCE))).forEach((row) => rowCache.set(String(row.id), row));
  return ids.map((id) => rowCache.get(String(id)));
}

export async function clustersNow(wait = false) {
  const found = await api.clusters(wait);
  state.names = new Map(found.filter((one) => one.name).map((one) => [one.id, one.name]));
  return found;
}

export const nameOf = (cluster) => (cluster === null || cluster === undefined || cluster < 0 ? S.clusters.newCluster : state.names.get(cluster) ?? S.cluster(cluster));

// The clusters whose name, number, title or example rows contain a text.
export function matching(clusters, text) {
  const wanted = text.trim().toLowerCase();
  const words = (one) => [nameOf(one.id), one.title, ...one.typical, ...one.borderline].join(" ").toLowerCase();
  return wanted ? clusters.filter((one) => words(one).includes(wanted)) : clusters;
}
