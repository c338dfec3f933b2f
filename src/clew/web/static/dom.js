// Elements from plain values. Text is always text: nothing here reads HTML.

export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

export function button(text, onclick, attributes) {
  return h("button", { type: "button", onclick, ...attributes }, text);
}

let toastTimer = 0;
export function toast(text, kind = "info") {
  const place = document.getElementById("toasts");
  clearTimeout(toastTimer);
  fill(place, h("div", { class: `toast ${kind}` }, text));
  toastTimer = setTimeout(() => fill(place), kind === "error" || kind === "note" ? 9000 : 3500);
}

// Colours that stay apart for people who see few of them; after twelve they come again, so a number is always shown too.
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a6fc2", "#b3a100", "#4f74b3", "#f0746e", "#66a182", "#946846"];
export const colourOf = (cluster) => (cluster === null || cluster === undefined || cluster < 0 ? "#8a8f98" : PALETTE[cluster % PALETTE.length]);

export function swatch(cluster) {
  return h("span", { class: "swatch", style: { "--colour": colourOf(cluster) }, "aria-hidden": "true" });
}
