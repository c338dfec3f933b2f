// The frame: views by address, keys, theme, who is here.

import { api, link } from "./api.js";
import { ask } from "./ask.js";
import { clusters } from "./clusters.js";
import * as dialog from "./dialog.js";
import { button, fill, h } from "./dom.js";
import { history } from "./history.js";
import { map } from "./map.js";
import { goOn, notices } from "./notice.js";
import { review } from "./review.js";
import { settings } from "./settings.js";
import { keep, onChange, state } from "./state.js";
import * as storage from "./storage.js";
import { S } from "./strings.js";

const VIEWS = { ask, map, clusters, review, history, settings };
let present = null;
let name = null;

function go() {
  const wanted = location.hash.slice(1) in VIEWS ? location.hash.slice(1) : "ask";
  if (wanted === name) return;
  present?.leave();
  name = wanted;
  document.title = `${S.views[name]} · clew`;
  present = VIEWS[name](document.getElementById("view"));
  nav();
}

function nav() {
  const waiting = state.progress?.conflicts ?? 0;
  const place = document.getElementById("nav");
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  fill(
    place,
    Object.keys(VIEWS).map((one, number) =>
      h("a", { href: `#${one}`, "aria-current": one === name ? "page" : null, title: `Alt + ${number + 1}` }, S.views[one], one === "review" && waiting ? h("span", { class: "badge" }, waiting) : null),
    ),
  );
  if (focused) place.querySelector(`[href="${focused}"]`).focus(); // news must not take the keyboard away
}

function who() {
  const field = h("input", { type: "text", value: state.annotator, maxlength: "60", "aria-label": S.youHint, title: S.youHint, spellcheck: "false" });
  field.addEventListener("change", () => {
    keep("annotator", field.value.trim() || "me");
    location.reload();
  });
  const themes = ["auto", "light", "dark"];
  const theme = () => storage.read("clew-theme") ?? "auto";
  const signs = { auto: "◐", light: "☀", dark: "☾" };
  const toggle = button(signs[theme()], () => {
    storage.write("clew-theme", themes[(themes.indexOf(theme()) + 1) % 3]);
    dress();
    toggle.textContent = signs[theme()];
    toggle.setAttribute("aria-label", S.theme[theme()]);
    toggle.title = S.theme[theme()];
  }, { class: "quiet theme", "aria-label": S.theme[theme()], title: S.theme[theme()] });
  fill(document.getElementById("who"), h("label", {}, h("span", {}, S.you), field), toggle);
}

function dress() {
  const theme = storage.read("clew-theme") ?? "auto";
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function typing(target) {
  return target.closest?.("input, textarea, select, [contenteditable]") !== null;
}

let clicked = null;
addEventListener("pointerdown", (event) => (clicked = event.target.closest("button")));
addEventListener("keydown", (event) => {
  if (event.key === "Tab") clicked = null;
  if (event.altKey && event.key >= "1" && event.key <= "6") {
    location.hash = Object.keys(VIEWS)[event.key - 1];
    event.preventDefault();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.getElementById("dialog").open) return;
  // A focused button or link answers to Space and Enter itself, except for Space among the questions after a click: the
  // button keeps the focus, but nobody went there by keyboard.
  if (event.key === "Enter" && event.target.closest("button, a")) return;
  if (event.key === " " && event.target.closest(name === "ask" ? "button" : "button, a") && (name !== "ask" || event.target !== clicked)) return;
  if (present?.keysDown(event)) event.preventDefault();
});
addEventListener("hashchange", () => {
  if (link.project === null) return;
  go();
  document.getElementById("view").focus();
});

onChange(nav);

// Milliseconds before a server that does not answer is asked again.
const AGAIN = 2000;

// Asks for a name where somebody else may have the one that this browser uses: before any question is given to that name.
async function introduce() {
  const browser = storage.read("clew-browser") ?? storage.random();
  storage.write("clew-browser", browser);
  for (;;) {
    const welcome = await api.visit(state.annotator, browser);
    const place = `clew-names:${welcome.project}`;
    const mine = JSON.parse(storage.read(place) ?? "[]");
    const name = welcome.is_taken && !mine.includes(state.annotator) ? await dialog.name(state.annotator) : state.annotator;
    const isNew = name !== state.annotator;
    if (!isNew) storage.write(place, JSON.stringify([...new Set([...mine, name])]));
    if (!isNew) return void (link.project = welcome.project);
    keep("annotator", name);
    who();
  }
}

async function start() {
  while (link.project === null) await introduce().catch(() => new Promise((resolve) => setTimeout(resolve, AGAIN)));
  go();
  goOn();
  storage.write("clew-opened", String(Date.now())); // tells tabs that lost their sign-in
  addEventListener("storage", (event) => event.key === "clew-opened" && link.trouble !== null && goOn());
}

dress();
const skip = document.getElementById("skip");
skip.textContent = S.skip;
skip.addEventListener("click", (event) => {
  event.preventDefault(); // the address says which view it is
  document.getElementById("view").focus();
});
who();
nav();
notices();
start();
