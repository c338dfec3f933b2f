// Every answer, to be found, changed and taken away; and everything else that happened.

import { api } from "./api.js";
import { shown } from "./cards.js";
import * as dialog from "./dialog.js";
import { button, fill, h, toast } from "./dom.js";
import { onChange, state } from "./state.js";
import { S } from "./strings.js";

const MOST_SHOWN = 500;

export function history(view) {
  const body = h("div", { class: "history-body" });
  const count = h("span", { class: "hint", role: "status" });
  const search = h("input", { type: "search", placeholder: S.history.filter, "aria-label": S.history.filter, oninput: () => draw() });
  const word = h("select", { "aria-label": S.history.all, onchange: () => draw() }, h("option", { value: "" }, S.history.all), Object.entries(S.answers).map(([value, text]) => h("option", { value }, text)));
  const who = h("select", { "aria-label": S.history.others, onchange: () => draw() });
  const tabs = h("div", { class: "tabs", role: "tablist" });
  const filters = h("div", { class: "filters" }, search, word, who, count);
  fill(view, h("section", { class: "history" }, h("div", { class: "head" }, h("h1", {}, S.history.title), exports_()), tabs, filters, body));
  let answers = [];
  let events = false;
  let left = false;

  function exports_() {
    return h("div", { class: "exports" }, h("span", { class: "hint" }, S.history.export), Object.entries(S.history.what).map(([what, text]) => [text, ["csv", "jsonl"].map((format) => h("a", { class: "button small", href: api.exportOf(what, format), download: `${what}.${format}`, dataset: { export: `${what}.${format}` } }, format))]));
  }

  function drawTabs() {
    fill(tabs, [[false, S.history.answersTab], [true, S.history.eventsTab]].map(([value, text]) => button(text, () => ((events = value), drawTabs(), load()), { role: "tab", "aria-selected": String(events === value) })));
    filters.hidden = events;
  }

  async function load() {
    try {
      if (events) return await drawEvents();
      answers = (await api.answers()).reverse();
      if (left) return;
      // Names that differ only in case are one person.
      const people = [...new Map(answers.map((one) => [nameKey(one.annotator), one.annotator])).values()].sort();
      const before = who.value;
      fill(who, h("option", { value: "" }, S.history.others), people.map((name) => h("option", { value: name, selected: name === before }, name)));
      draw();
    } catch (error) {
      fill(body, h("p", { class: "warning" }, error.message));
    }
  }

  function draw() {
    const text = search.value.trim().toLowerCase();
    const found = answers.filter((one) => (!word.value || one.answer === word.value) && (!who.value || nameKey(one.annotator) === nameKey(who.value)) && (!text || [one.left, one.right, one.annotator, one.comment].some((value) => shown(value).toLowerCase().includes(text))));
    fill(count, S.history.shown(found.length, answers.length));
    if (!found.length) return fill(body, h("p", { class: "finished" }, answers.length ? S.history.noneMatch : S.history.none));
    fill(body, h("table", { class: "log" }, head(S.history.columns), h("tbody", {}, found.slice(0, MOST_SHOWN).map(line))));
  }

  function line(one) {
    const notes = [one.flag && S.history.flag, one.check && S.history.check, one.revised && S.history.revised, one.confirmed && S.history.kept(one.confirmed), one.batch !== null && S.history.imported, one.aside && S.history.aside].filter(Boolean);
    const choice = h("select", { class: `word ${one.answer}`, "aria-label": `${S.history.columns[3]} ${one.id}`, onchange: () => change(one, choice.value) }, Object.entries(S.answers).map(([value, text]) => h("option", { value, selected: value === one.answer }, text)));
    return h(
      "tr",
      { dataset: { answer: one.id } },
      h("td", { class: "number" }, one.id), h("td", { class: "id", dir: "auto" }, shown(one.left)), h("td", { class: "id", dir: "auto" }, shown(one.right)),
      h("td", {}, one.kind === "which" ? S.answers[one.answer] : choice),
      h("td", { class: "person" }, one.annotator), h("td", { class: "time" }, when(one.time)), h("td", { class: "number" }, one.seconds === null ? "" : one.seconds.toFixed(1)),
      h("td", {}, notes.map((note) => h("span", { class: "tag" }, note)), one.comment ? h("span", { class: "remark" }, one.comment) : null),
    );
  }

  async function change(one, answer) {
    try {
      const told = await api.revise(one.id, { answer, annotator: state.annotator });
      if (told.conflict) await dialog.conflict(told.conflict);
      else toast(S.history.changed, "good");
    } catch (error) {
      toast(error.message, "error");
    }
    load();
  }

  async function drawEvents() {
    const rows = h("tbody", {});
    let last = null;
    const more = button(S.more, () => page(), {});
    const page = async () => {
      const found = await api.history(last);
      last = found.at(-1)?.seq ?? last;
      more.hidden = found.length < 100;
      rows.append(...found.map((one) => h("tr", { class: one.undone ? "undone" : "" }, h("td", { class: "number" }, one.seq), h("td", {}, S.history.kinds[one.kind] ?? one.kind, one.undone ? h("span", { class: "tag" }, S.history.undone) : null), h("td", { class: "person" }, one.annotator), h("td", { class: "time" }, when(one.time)), h("td", { class: "details" }, summary(one)))));
    };
    await page();
    if (!left) fill(body, h("table", { class: "log" }, head(S.history.eventColumns), rows), more);
  }

  const stopListening = onChange((kind) => kind === "progress" && !events && !document.getElementById("dialog").open && document.activeElement?.tagName !== "SELECT" && load());
  drawTabs();
  load();
  return {
    keysDown: () => false,
    leave() {
      left = true;
      stopListening();
    },
  };
}

const nameKey = (name) => name.trim().toLowerCase();

const head = (names) => h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name))));

function when(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : date.toLocaleString(undefined, { dateStyle: "short", timeStyle: "short" });
}

function summary(event) {
  const { kind, payload } = event;
  if (kind === "answer") return S.history.said(shown(payload.left), shown(payload.right ?? S.ask.none), S.answers[payload.answer] ?? payload.answer);
  if (kind === "undo") return S.history.undoes(payload.undoes);
  if (kind === "fit") return [S.history.made(payload.clusters), ...payload.notes].join(" ");
  if (kind === "create") return "";
  const text = Object.entries(payload).filter(([key, value]) => value !== null && key !== "changes").map(([key, value]) => `${key} ${shown(value)}`).join(", ");
  if (kind === "confirm") return payload.changes.map((one) => S.history.no(one.answer_id)).join(", ");
  const changed = kind === "revise" || kind === "resolve" ? payload.changes.map((one) => S.history.becomes(one.answer_id, S.answers[one.answer] ?? S.history.aside)) : [];
  const whole = [...changed, text].filter(Boolean).join("; ");
  return whole.length > 240 ? `${whole.slice(0, 240)}…` : whole;
}
