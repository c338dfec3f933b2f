// The frame: views by address, keys, theme, who is here.

import { ask } from "./ask.js";
import { clusters } from "./clusters.js";
import { button, fill, h } from "./dom.js";
import { history } from "./history.js";
import { map } from "./map.js";
import { review } from "./review.js";
import { settings } from "./settings.js";
import { keep, listen, onChange, state } from "./state.js";
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
  const theme = () => localStorage.getItem("clew-theme") ?? "auto";
  const signs = { auto: "◐", light: "☀", dark: "☾" };
  const toggle = button(signs[theme()], () => {
    localStorage.setItem("clew-theme", themes[(themes.indexOf(theme()) + 1) % 3]);
    dress();
    toggle.textContent = signs[theme()];
    toggle.setAttribute("aria-label", S.theme[theme()]);
    toggle.title = S.theme[theme()];
  }, { class: "quiet theme", "aria-label": S.theme[theme()], title: S.theme[theme()] });
  fill(document.getElementById("who"), h("label", {}, h("span", {}, S.you), field), toggle);
}

function dress() {
  const theme = localStorage.getItem("clew-theme") ?? "auto";
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
  go();
  document.getElementById("view").focus();
});

onChange((kind) => {
  const banner = document.getElementById("banner");
  if (kind === "offline") fill(banner, S.offline);
  const problem = state.progress?.problem ?? null;
  if (kind === "progress") fill(banner, problem ?? "");
  banner.hidden = kind === "offline" ? false : kind === "online" ? !problem : kind === "progress" ? !problem : banner.hidden;
  nav();
});

dress();
const skip = document.getElementById("skip");
skip.textContent = S.skip;
skip.addEventListener("click", (event) => {
  event.preventDefault(); // the address says which view it is
  document.getElementById("view").focus();
});
who();
go();
listen();
