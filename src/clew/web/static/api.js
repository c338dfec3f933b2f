// The server's routes. Failures become errors with the server's own sentence.

import { S } from "./strings.js";

// `said` tells whether the sentence is the server's own.
export class Refused extends Error {
  constructor(status, message, said = false) {
    super(message);
    this.status = status;
    this.said = said;
  }
}

// How things stand between the page and its server: `trouble` is the last error that concerns every request.
export const link = { project: null, trouble: null, onChange: () => {} };
const OF_EVERY_REQUEST = [0, 401, 403, 412];
// Milliseconds after which an answer counts as not sent; the server itself waits less long for its database.
const PATIENCE = 60_000;

function notice(error) {
  if (error?.status === link.trouble?.status) return;
  link.trouble = error;
  link.onChange();
}

async function call(method, path, body, headers) {
  try {
    const answer = await request(method, path, body, headers);
    notice(null);
    return answer;
  } catch (error) {
    if (OF_EVERY_REQUEST.includes(error.status)) notice(error);
    throw error;
  }
}

async function request(method, path, body, headers) {
  const isData = body instanceof Blob;
  let answer;
  try {
    answer = await fetch(`/api/${path}`, {
      method,
      headers: { ...(body === undefined || isData ? {} : { "Content-Type": "application/json" }), ...(link.project === null ? {} : { "X-Clew-Project": link.project }), ...headers },
      body: body === undefined ? undefined : isData ? body : JSON.stringify(body),
      signal: path === "answers" && method === "POST" ? AbortSignal.timeout(PATIENCE) : undefined,
    });
  } catch {
    throw new Refused(0, S.offline);
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, said.error ?? `${answer.status} ${answer.statusText}`, Boolean(said.error));
}

// Trades a token for the cookie; gives whether it is the right one.
export async function signIn(token) {
  const answer = await fetch(`/?${new URLSearchParams({ token })}`).catch(() => null);
  return answer?.ok ?? false;
}

const json = async (method, path, body) => (await call(method, path, body)).json();

async function bytes(path) {
  const answer = await call("GET", path);
  return answer.status === 202 ? null : answer.arrayBuffer();
}

const mapOf = (embedding, box) => new URLSearchParams([["embedding", embedding], ...(box ?? []).map((one) => ["box", one])]);

export const api = {
  visit: (annotator, browser) => json("POST", "visits", { annotator, browser }),
  next: (annotator, n, holding) => json("POST", "questions/next", { annotator, n, holding }),
  stillOpen: (questions) => json("POST", "questions/open", { questions }),
  answer: (body) => json("POST", "answers", body),
  answers: () => json("GET", "answers"),
  confirm: (id, annotator) => json("POST", `answers/${id}/confirm`, { annotator }),
  revise: (id, body) => json("PATCH", `answers/${id}`, body),
  undo: (annotator) => json("POST", "undo", { annotator }),
  progress: () => json("GET", "progress"),
  rows: (ids) => json("GET", `rows?${new URLSearchParams(ids.map((id) => ["ids", id]))}`),
  clusters: (wait) => json("GET", `clusters?wait=${wait}`),
  members: (cluster, offset, limit) => json("GET", `clusters/${cluster}/rows?offset=${offset}&limit=${limit}`),
  name: (cluster, body) => json("PATCH", `clusters/${cluster}`, body),
  groupings: () => json("GET", "groupings"),
  regroup: (body) => json("POST", "groupings", body),
  removeGrouping: (body) => json("POST", "groupings/remove", body),
  correct: (body) => json("POST", "corrections", body),
  preview: (body) => json("POST", "corrections/preview", body),
  conflicts: () => json("GET", "conflicts"),
  resolve: (id, body) => json("POST", `conflicts/${id}/resolve`, body),
  review: () => json("GET", "review?limit=50"),
  history: (before) => json("GET", `history?limit=100${before ? `&before=${before}` : ""}`),
  agreement: () => json("GET", "agreement"),
  settings: () => json("GET", "settings"),
  change: (body) => json("PUT", "settings", body),
  rescan: (annotator) => json("POST", `rows/rescan?annotator=${encodeURIComponent(annotator)}`),
  upload: async (path, file, annotator) =>
    (await call("POST", `${path}?${new URLSearchParams({ name: file.name, annotator })}`, file, { "Content-Type": "application/octet-stream" })).json(),
  // null while the map is being made. `box` is left, bottom, right and top of a part of the map, null for all of it.
  points: (embedding, box = null) => bytes(`map?${mapOf(embedding, box)}`).then((found) => found && new Float32Array(found)),
  pointClusters: (embedding, box = null) => bytes(`map/clusters?${mapOf(embedding, box)}`).then((found) => found && new Int32Array(found)),
  pointIds: (embedding, box = null) => json("GET", `map/ids?${mapOf(embedding, box)}`),
  tile: (embedding, level, column, row) => bytes(`map/tiles/${level}/${column}/${row}?embedding=${embedding}`),
  fileOf: (id, column) => `/api/rows/file?${new URLSearchParams({ id, column })}`,
  exportOf: (what, format) => `/api/export/${what}?format=${format}`,
};
