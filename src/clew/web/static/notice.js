// What stands between the page and its server, above every view: what happened, where the answers are, what to do.

import { link, signIn } from "./api.js";
import { button, fill, h, toast } from "./dom.js";
import * as outbox from "./outbox.js";
import { listen, onChange, state } from "./state.js";
import { S } from "./strings.js";

let shown = "";

export function notices() {
  onChange(draw);
  onChange((kind) => kind === "progress" && drawTraining(document.getElementById("training"), state.progress.training));
  outbox.onChange(draw);
  link.onChange = draw;
  draw();
}

// After a sign-in, here or in another tab.
export function goOn() {
  listen();
  outbox.send();
}

function draw() {
  const now = { status: link.trouble?.status ?? null, why: link.trouble?.message ?? outbox.problem()?.message ?? state.progress?.problem ?? null, waiting: outbox.waiting().length, lives: outbox.lives(), refused: outbox.refused() };
  const key = JSON.stringify(now);
  if (key === shown) return; // what somebody types or selects here must stay
  const onlyCounts = shown !== "" && document.activeElement?.closest("#banner input") && now.status === JSON.parse(shown).status;
  shown = key;
  const place = document.getElementById("banner");
  const count = place.querySelector(".kept");
  if (onlyCounts && count) return void fill(count, kept(now));
  const parts = [trouble(now), h("div", { class: "kept" }, kept(now)), refusals(now.refused)];
  const empty = now.why === null && !now.lives && !now.refused.length;
  place.hidden = empty;
  fill(place, empty ? null : parts);
}

// Training a network takes long. Without this line, old clusters would look like its result.
function drawTraining(place, training) {
  place.hidden = training === null;
  fill(place, training === null ? null : S.training(training));
}

function trouble({ status, why }) {
  if (status === 401) return [h("strong", {}, S.link.signedOut), signInForm()];
  if (status === 412) return [h("strong", {}, S.link.otherProject), " ", button(S.link.open, () => location.reload(), { class: "small" })];
  return why === null ? null : h("strong", {}, why);
}

function kept({ status, why, waiting, lives }) {
  if (!lives && (!waiting || why === null)) return null;
  const sentence = lives ? S.link.unkept(lives) : status === 412 ? S.link.waitingForProject(waiting) : S.link.waiting(waiting);
  return [sentence, " ", button(S.link.copyWaiting, () => copy(csv(outbox.waiting())), { class: "small" })];
}

function signInForm() {
  const field = h("input", { type: "text", "aria-label": S.link.field, placeholder: S.link.field, spellcheck: "false", autocomplete: "off" });
  const enter = async () => {
    const { token, origin } = read(field.value.trim());
    if (origin !== null) return toast(S.link.elsewhere(origin), "note");
    if (!token || !(await signIn(token))) return toast(S.link.wrong, "error");
    goOn();
  };
  field.addEventListener("keydown", (event) => event.key === "Enter" && enter());
  return h("div", { class: "sign-in" }, h("span", {}, S.link.whatToDo), field, button(S.link.signIn, enter, { class: "primary" }));
}

// The token in what was pasted; with `origin`, where the address is not this page's.
function read(text) {
  let address = null;
  try {
    address = new URL(text);
  } catch {
    return { token: text, origin: null };
  }
  const token = address.searchParams.get("token");
  return { token: token ?? text, origin: token === null || address.port === location.port ? null : address.origin };
}

// -- answers that the server will never take ---------------------------------------------------------------------------

function refusals(entries) {
  if (!entries.length) return null;
  return h(
    "div",
    { class: "refusals" },
    h("strong", {}, S.link.refused(entries.length)),
    h("ul", {}, entries.map((one) => h("li", {}, `${words(one).slice(0, 2).join(" – ")}: ${S.answers[words(one)[2]] ?? words(one)[2]}. `, one.refused, " ", button(S.link.again, () => outbox.again(one.key), { class: "small" }), " ", button(S.link.forget, () => outbox.forget(one.key), { class: "small" })))),
    button(S.link.copy, () => copy(csv(entries)), { class: "small" }),
  );
}

// An answer as files of answers have it.
function words({ body, question }) {
  if (question.kind !== "which") return [question.left, question.right, body.answer];
  return ["none", "unsure"].includes(body.answer) ? [question.left, question.candidates.join(" "), body.answer] : [question.left, body.answer, "same"];
}

const csv = (entries) => ["id_1,id_2,answer", ...entries.map((one) => words(one).map(cell).join(","))].join("\n");
const cell = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));

async function copy(text) {
  const area = h("textarea", { class: "copied", readonly: "" }, text);
  document.getElementById("banner").append(area); // for browsers that keep the clipboard for encrypted pages
  area.select();
  const done = await (navigator.clipboard?.writeText(text).then(() => true, () => null) ?? null);
  if (done || document.execCommand("copy")) area.remove();
  toast(S.link.copied);
}
