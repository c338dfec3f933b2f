// Answers that the server has not acknowledged. They are kept in the browser's storage, so that a reload, a closed tab or a
// restart of the server loses none. Each answer has a key of its own, because the tabs of a browser share the storage. Keys
// name the project and sort in the order of answering:
//
//   clew-outbox:PROJECT:0001763308800000:RANDOM → {"body": …, "question": …, "tried": false, "refused": null}
//
// `body` is what the server gets, `question` what an undo shows again. `tried` says that the server may have the answer.
// `refused` is the reason why the server will never take it. The server takes an answer once, however often it is sent.

import { api, link } from "./api.js";
import * as storage from "./storage.js";
import { S } from "./strings.js";

// Milliseconds before the next attempt.
const RETRY = [500, 1000, 2000, 4000, 8000];
// These statuses say that the same request may succeed later, or after the person has done something.
const MAY_SUCCEED = new Set([0, 401, 403, 408, 412, 425, 429]);
// These say that nothing was recorded; after others the answer may be in the log.
const NOT_RECORDED = new Set([401, 403, 408, 412, 425, 429, 503, 507]);

// Answers that the storage did not take: they live as long as this tab.
const unkept = new Map();
const listeners = new Set();
const hearers = new Set();
let trouble = null;
let sending = false;
let wake = null;

const prefix = () => `clew-outbox:${link.project}:`;
const mayBeRecorded = (error) => !NOT_RECORDED.has(error.status);
const isFinal = (error) => error.said && error.status < 500 && !MAY_SUCCEED.has(error.status);

function entries() {
  const found = new Map(storage.keys(prefix()).map((key) => [key, JSON.parse(storage.read(key))]));
  for (const [key, entry] of unkept) if (key.startsWith(prefix())) found.set(key, entry);
  return [...found].filter(([, entry]) => entry !== null).sort(([one], [two]) => (one < two ? -1 : 1)).map(([key, entry]) => ({ key, ...entry }));
}

export const waiting = () => entries().filter((one) => one.refused === null);
export const refused = () => entries().filter((one) => one.refused !== null);
export const lives = () => unkept.size;
// Why the first answer still waits: the error of the last attempt.
export const problem = () => (waiting().length ? trouble : null);

export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// Hears what the server told about an answer.
export function onTold(hearer) {
  hearers.add(hearer);
}

function changed() {
  for (const listener of listeners) listener();
}

function keep({ key, ...entry }) {
  if (storage.write(key, JSON.stringify(entry))) unkept.delete(key);
  else unkept.set(key, entry);
  changed();
}

export function forget(key) {
  storage.remove(key);
  unkept.delete(key);
  changed();
}

export function put(body, question) {
  const last = entries().at(-1)?.key.slice(prefix().length).split(":")[0] ?? 0;
  const time = Math.max(Date.now(), Number(last) + 1); // a clock that is set back must not change the order
  keep({ key: `${prefix()}${String(time).padStart(16, "0")}:${storage.random()}`, body, question, tried: false, refused: null });
  send();
}

export function again(key) {
  const entry = entries().find((one) => one.key === key);
  if (entry) keep({ ...entry, refused: null });
  send();
}

// Takes back the last answer of a person: gives its question. Null: none waits. False: the server may have it already.
export function takeBack(annotator) {
  return alone(() => {
    const last = waiting().filter((one) => one.body.annotator === annotator).at(-1);
    if (last === undefined) return null;
    if (last.tried) return false;
    forget(last.key);
    return last.question;
  });
}

// -- sending -----------------------------------------------------------------------------------------------------------

// One tab at a time sends or takes back. Without locks (they need HTTPS or this machine) every tab sends for itself; each
// sends an answer only after the one before, so that the order stays.
let turn = Promise.resolve();
function alone(work) {
  if (navigator.locks) return navigator.locks.request(prefix(), work);
  turn = turn.then(work, work);
  return turn;
}

export function send() {
  wake?.();
  if (sending || link.project === null) return;
  sending = true;
  sendAll().finally(() => {
    sending = false;
    changed();
  });
}

async function sendAll() {
  let tries = 0;
  while (waiting().length) {
    trouble = await alone(attempt);
    changed();
    if (trouble === null) tries = 0;
    else
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, RETRY[Math.min(tries++, RETRY.length - 1)]);
      });
  }
}

// Sends the first answer; gives the error after which it waits.
async function attempt() {
  const first = waiting()[0];
  if (first === undefined) return null;
  if (!first.tried) keep({ ...first, tried: true });
  try {
    const told = await api.answer(first.body);
    forget(first.key);
    for (const hear of hearers) hear(told, first);
    return null;
  } catch (error) {
    if (isFinal(error)) keep({ ...first, tried: false, refused: error.status === 409 ? S.link.answered : error.message });
    else if (!first.tried && !mayBeRecorded(error)) keep({ ...first, tried: false });
    return isFinal(error) ? null : error;
  }
}

addEventListener("storage", (event) => (event.key === null || event.key.startsWith(prefix())) && changed());
for (const kind of ["online", "focus"]) addEventListener(kind, send);
// Answers in the storage outlive the tab; those it did not take do not.
addEventListener("beforeunload", (event) => unkept.size && event.preventDefault());
