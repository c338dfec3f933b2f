// Settings, new rows, imported answers, and how people agree.

import { api } from "./api.js";
import { button, fill, h, toast } from "./dom.js";
import { state } from "./state.js";
import { S } from "./strings.js";

const T = S.settings;

export function settings(view) {
  const place = h("section", { class: "settings" });
  fill(view, place);

  async function load() {
    try {
      const [project, agreement] = await Promise.all([api.settings(), api.agreement()]);
      draw(project, agreement);
    } catch (error) {
      fill(place, h("p", { class: "warning" }, error.message));
    }
  }

  function draw(project, agreement) {
    const now = project.settings;
    const fields = {
      n_clusters: h("input", { type: "number", min: "1", value: now.n_clusters ?? "" }),
      groups: choice(project.choices.groups.map((one) => [one, T.groupSizes[one]]), now.groups ?? "auto"),
      method: choice([["", T.auto], ...project.choices.method.map((one) => [one, one])], now.method ?? ""),
      metric: choice(project.choices.metric.map((one) => [one, one]), now.metric),
      scale: choice(project.choices.scale.map((one) => [one, one]), now.scale),
      text: choice(project.choices.text.map((one) => [one, one]), now.text),
      strategy: choice([["", T.auto], ...project.choices.strategy.map((one) => [one, one])], now.strategy ?? ""),
      overlap: h("input", { type: "number", min: "1", max: "20", value: now.overlap }),
      error_rate: h("input", { type: "number", min: "0", max: "0.49", step: "0.01", value: now.error_rate ?? "" }),
      check_share: h("input", { type: "number", min: "0", max: "0.05", step: "0.01", value: now.check_share ?? "" }),
    };
    const columns = h("div", { class: "columns", role: "group", "aria-label": T.columns }, project.columns.filter((one) => one !== now.id_column).map((one) => h("label", { class: "check" }, h("input", { type: "checkbox", value: one, checked: (now.columns ?? []).includes(one) }), one)));
    const label = (name, hint) => h("label", { class: "field" }, h("span", {}, T[name]), fields[name], hint ? h("small", {}, hint) : null);

    async function save(event) {
      event.preventDefault();
      const chosen = [...columns.querySelectorAll("input:checked")].map((one) => one.value);
      const wanted = {
        n_clusters: fields.n_clusters.value === "" ? null : Number(fields.n_clusters.value),
        groups: fields.groups.value === "auto" && !now.groups ? null : fields.groups.value,
        method: fields.method.value || null,
        strategy: fields.strategy.value || null,
        metric: fields.metric.value,
        scale: fields.scale.value,
        text: fields.text.value,
        columns: chosen.length ? chosen : null,
        overlap: Number(fields.overlap.value),
        error_rate: fields.error_rate.value === "" ? null : Number(fields.error_rate.value),
        check_share: fields.check_share.value === "" ? null : Number(fields.check_share.value),
      };
      const changed = Object.fromEntries(Object.entries(wanted).filter(([name, value]) => JSON.stringify(value ?? null) !== JSON.stringify(now[name] ?? null)));
      if (!Object.keys(changed).length) return toast(T.saved, "good");
      try {
        draw(await api.change({ ...changed, annotator: state.annotator }), agreement);
        toast(T.saved, "good");
      } catch (error) {
        toast(error.message, "error");
      }
    }

    fill(
      place,
      h("h1", {}, T.title),
      h("p", { class: "hint" }, T.project(project.project, project.rows)),
      project.changes ? h("p", { class: "warning" }, project.changes) : null,
      h(
        "form",
        { onsubmit: save },
        h("fieldset", {}, h("legend", {}, T.clustering), label("groups", T.groups_hint), label("n_clusters", T.n_clusters_hint), label("method", T.method_hint(project.choices.method.includes("deep-constrained-clustering"))), label("metric", T.metric_hint), label("scale", T.scale_hint), label("text", T.text_hint), h("div", { class: "field wide" }, h("span", {}, T.columns), columns, h("small", {}, T.columns_hint))),
        h("fieldset", {}, h("legend", {}, T.asking), label("strategy", T.strategy_hint), label("overlap"), label("check_share", T.check_hint), label("error_rate", T.error_hint)),
        h("button", { type: "submit", class: "primary" }, T.save),
      ),
      h(
        "fieldset",
        {},
        h("legend", {}, T.data),
        h("label", { class: "field wide" }, h("span", {}, T.addRows), h("input", { type: "file", accept: ".csv,.tsv,.jsonl,.parquet", onchange: (event) => upload(event, "rows", T.added) })),
        h("label", { class: "field wide" }, h("span", {}, T.importAnswers), h("input", { type: "file", accept: ".csv,.tsv,.jsonl,.json,.parquet", onchange: (event) => upload(event, "answers/import", T.imported) })),
        button(T.rescan, rescan, {}),
      ),
      h(
        "fieldset",
        {},
        h("legend", {}, T.agreement),
        agreement.people.length ? people(agreement.people) : null,
        agreement.pairs.length ? null : h("p", { class: "hint" }, T.agreementNone),
      ),
    );
  }

  // Error rates are known once answers are evidence.
  function people(found) {
    const number = (text) => h("td", { class: "number" }, text);
    const isKnown = (one) => one.error_rate !== null;
    return h(
      "div",
      { class: "people" },
      h(
        "table",
        { class: "log" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, T.person), [T.answers, T.looksWrong, T.errorRate, T.othersAgree, T.corrected].map((one) => h("th", { scope: "col", class: "number" }, one)))),
        h("tbody", {}, found.map((one) => h("tr", {}, h("td", {}, one.annotator), number(one.answered.toLocaleString()), number(isKnown(one) ? one.looks_wrong.toLocaleString() : S.empty), number(isKnown(one) ? `${Math.round(100 * one.error_rate)} %` : S.empty), number(one.shared ? T.of(one.agreed, one.shared) : S.empty), number(one.corrected.toLocaleString())))),
      ),
    );
  }

  async function upload(event, path, said) {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    try {
      const done = await api.upload(path, file, state.annotator);
      toast(said(done.count), "good");
      load();
    } catch (error) {
      toast(error.message, "error");
    }
  }

  async function rescan() {
    try {
      toast(T.added((await api.rescan(state.annotator)).count), "good");
      load();
    } catch (error) {
      toast(error.message, "error");
    }
  }

  load();
  return { keysDown: () => false, leave() {} };
}

function choice(options, value) {
  return h("select", {}, options.map(([one, text]) => h("option", { value: one, selected: one === value }, text)));
}
