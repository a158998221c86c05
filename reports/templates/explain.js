/* The page: controls, coloured text, tables. Texts are put in as text, never as markup. */
"use strict";

(() => {
  const { data, maps, state, say, number, percent, words, methodName, method, pieces, scoresOf, largest } = VeedorState;
  const at = (id) => document.getElementById(id);
  const sorting = { key: "place", down: false };
  let chosen = null; // the word or token whose numbers stay
  let shown = null; // what the present choices gave

  /** A new element with properties, attributes (in `attributes`), a share for its colour, and children. */
  function make(tag, { share, attributes = {}, ...properties } = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    if (share !== undefined) made.style.setProperty("--share", share.toFixed(4));
    made.append(...children);
    return made;
  }

  const LONGEST = 48; // characters of a name in a table
  const brief = (name) => (name.length > LONGEST ? `${[...name].slice(0, LONGEST).join("")}…` : name);
  const isolated = (text) => make("bdi", {}, text);
  const option = (value, text) => make("option", { value }, text);
  const tone = (score, signed) => (signed ? (score < 0 ? "against" : "for") : "");

  /** Enough decimals for the largest score to show three figures. */
  function digitsFor(most) {
    return Math.min(9, Math.max(1, 2 - Math.floor(Math.log10(most))));
  }

  // Words of the page

  function speak() {
    document.documentElement.lang = state.language;
    document.querySelectorAll("[data-t]").forEach((one) => { one.textContent = say(one.dataset.t); });
    const [label, probability] = data.answer;
    at("answer").textContent = say("answer", { label, probability: percent(probability, 1) });
  }

  function aboutParts() {
    const of = method();
    const fixed = of.scores[of.targeted ? state.target : 0];
    const parts = [methodName(of.name)];
    if (of.recomputed) parts.push(...recomputedParts(of.name));
    if (of.targeted) {
      const label = data.labels[state.target];
      parts.push(say("about_label", { label, function: words().score_function[fixed.function] || fixed.function }));
      if (data.assumed && state.target === 0) parts.push(say("assumed"));
      if (fixed.gap !== null) parts.push(say("gap", { gap: percent(fixed.gap, 2) }));
    } else parts.push(say("no_label"));
    if (shown.specials !== null && data.tokens.some((token) => token[3])) {
      const which = state.specials === "keep" ? "specials_kept" : "specials_dropped";
      parts.push(say(which, { share: percent(shown.specials, 1) }));
    }
    return parts;
  }

  function recomputedParts(name) {
    const heads = name === "rollout" && typeof state.head === "number" && state.layer > 1
      ? say("head_below", { head: VeedorState.headName() }) : VeedorState.headName();
    const values = {
      layer: state.layer, layers: maps.layers, heads, residual: number(state.residual, 2), row: VeedorState.rowName(),
    };
    const parts = [say(name === "rollout" ? "rollout_state" : "attention_state", values)];
    return VeedorState.differs() ? [...parts, say("uniform_state")] : parts;
  }

  // Controls

  function fill(select, options, value) {
    select.replaceChildren(...options);
    select.value = value;
  }

  function methodOptions() {
    const label = (one) => methodName(one.name) + (data.doubts[one.name] ? ` (${say("marked")})` : "");
    const group = (name, here) => {
      const own = data.methods.filter((one) => one.recomputed === here);
      return own.length ? [make("optgroup", { label: say(name) }, ...own.map((one) => option(one.name, label(one))))] : [];
    };
    return [...group("methods_here", true), ...group("methods_fixed", false)];
  }

  function showControls() {
    const of = method();
    fill(at("method"), methodOptions(), of.name);
    const labels = of.targeted ? data.labels.map((label) => option(label, label)) : [option("", say("no_label_short"))];
    fill(at("target"), labels, of.targeted ? data.labels[state.target] : "");
    at("target").disabled = !of.targeted;
    at("unit").value = state.unit;
    at("specials").checked = state.specials === "drop";
    at("specials-line").hidden = !data.tokens.some((token) => token[3]) || (state.unit === "words" && !of.recomputed);
    at("attention").hidden = !of.recomputed;
    at("language").value = state.language;
    if (maps) showAttention(of);
  }

  function showAttention(of) {
    const values = { layer: state.layer, layers: maps.layers };
    at("layer-name").textContent = say(of.name === "rollout" ? "layers" : "layer");
    at("layer-value").textContent = say(of.name === "rollout" ? "layers_value" : "layer_value", values);
    Object.assign(at("layer"), { max: maps.layers, value: state.layer });
    const heads = maps.fused ? ["mean"] : ["mean", "max", "min", ...Array(maps.heads).keys()];
    const text = (head) => (typeof head === "number" ? head + 1 : head);
    fill(at("head"), heads.map((head) => option(text(head), VeedorState.headName(head))), text(state.head));
    at("residual-line").hidden = of.name !== "rollout";
    at("residual").value = state.residual;
    at("residual-value").textContent = number(state.residual, 2);
    const rows = ["read", ...data.tokens.keys()];
    fill(at("row"), rows.map((row) => option(row === "read" ? row : row + 1, VeedorState.rowName(row))), VeedorState.written("row"));
    at("uniform-line").hidden = !maps.causal;
    at("uniform").checked = state.reference === "uniform";
  }

  // The text

  function showText() {
    const scores = shown[state.unit];
    const most = largest(scores);
    const parts = [];
    pieces().forEach(([before, characters, name, special], place) => {
      if (before) parts.push(before);
      const text = special && scores[place] !== null ? name : characters;
      if (!text) return;
      const share = Math.abs(scores[place] || 0) / most;
      const kinds = ["w", tone(scores[place], shown.signed), special ? "special" : ""];
      const attributes = { role: "button", "aria-pressed": "false", tabindex: "-1", "data-place": place };
      parts.push(make("span", { share, className: kinds.filter(Boolean).join(" "), attributes, title: told(place) }, text));
      if (special) parts.push(" ");
    });
    at("text").replaceChildren(...parts, make("span", { className: "rest" }, data.rest[state.unit]));
    showLegend();
    mark();
  }

  function told(place) {
    const score = shown[state.unit][place];
    const name = brief(pieces()[place][2]);
    if (score === null) return say("readout", { name, score: say("left_out_score") });
    const most = largest(shown[state.unit]);
    const said = say("readout", { name, score: number(score, digitsFor(most), shown.signed) });
    return `${said} · ${say("readout_share", { share: percent(Math.abs(score) / most) })}`;
  }

  function showLegend() {
    const differs = method().recomputed;
    const kind = (name, text) => make("span", { className: `w ${name} s20` }, say(text));
    const soft = (name) => make("span", { className: "soft" }, say(name));
    const ramp = make("span", { className: "ramp", attributes: { "aria-hidden": "true" } });
    at("legend").replaceChildren(...(shown.signed
      ? [kind("against", differs ? "legend_below" : "legend_against"), kind("for", differs ? "legend_beyond" : "legend_for"),
        soft(differs ? "legend_sign_uniform" : "legend_sign")]
      : [soft("legend_none"), ramp, soft("legend_much")]));
  }

  /** Mark the chosen word wherever it stands; one word of the text can be reached with the tab key. */
  function mark() {
    const spans = [...at("text").querySelectorAll("span[role]")];
    const current = spans.find((span) => Number(span.dataset.place) === chosen) || spans[0];
    spans.forEach((span) => {
      span.setAttribute("aria-pressed", String(Number(span.dataset.place) === chosen));
      span.tabIndex = span === current ? 0 : -1;
    });
    document.querySelectorAll("tr[data-place]").forEach((row) => {
      row.classList.toggle("chosen", Number(row.dataset.place) === chosen);
    });
    at("readout").textContent = chosen === null ? leading() : told(chosen);
  }

  function leading() {
    const order = [...shown[state.unit].entries()].filter(([, score]) => score).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const digits = digitsFor(largest(shown[state.unit]));
    const list = order.slice(0, 3).map(([place, score]) => `${brief(pieces()[place][2])} ${number(score, digits, shown.signed)}`);
    return list.length ? say("largest", { list: list.join(" · ") }) : "";
  }

  function choosePlace(place) {
    chosen = chosen === place ? null : place;
    mark();
  }

  function moveAlongText(event) {
    const span = event.target.closest("span[role]");
    if (!span) return;
    const spans = [...at("text").querySelectorAll("span[role]")];
    const here = spans.indexOf(span);
    const turned = getComputedStyle(span).direction === "rtl" ? -1 : 1;
    const steps = { ArrowRight: here + turned, ArrowLeft: here - turned, Home: 0, End: spans.length - 1 };
    if (event.key === "Enter" || event.key === " ") choosePlace(Number(span.dataset.place));
    else if (!(event.key in steps)) return;
    else {
      span.tabIndex = -1;
      const next = spans[Math.min(spans.length - 1, Math.max(0, steps[event.key]))];
      next.tabIndex = 0;
      next.focus();
    }
    event.preventDefault();
  }

  // Tables

  function header(key, text, kind = "") {
    const order = sorting.key === key ? (sorting.down ? "descending" : "ascending") : "none";
    const attributes = { scope: "col", "aria-sort": order, "data-key": key };
    return make("th", { className: kind, attributes }, make("button", { type: "button" }, text));
  }

  function sortedPlaces(scores) {
    const by = {
      place: (place) => place,
      name: (place) => pieces()[place][2],
      score: (place) => (scores[place] === null ? -Infinity : scores[place]),
      share: (place) => Math.abs(scores[place] || 0),
    }[sorting.key];
    const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, state.language) : a < b ? -1 : a > b ? 1 : 0);
    const order = [...scores.keys()].sort((a, b) => compare(by(a), by(b)) || a - b);
    return sorting.down ? order.reverse() : order;
  }

  function showScores() {
    const scores = shown[state.unit];
    const most = largest(scores);
    const name = say(state.unit === "words" ? "word" : "token");
    const head = make("tr", {}, header("place", say("place"), "place"), header("name", name),
      header("score", say("score"), "num"), header("share", say("share")));
    const rows = sortedPlaces(scores).map((place) => scoreRow(place, scores[place], most));
    const empty = make("tr", {}, make("td", { colSpan: 4 }, say("no_words")));
    const body = make("tbody", {}, ...(rows.length ? rows : [empty]));
    at("scores").replaceChildren(make("table", {}, make("thead", {}, head), body));
  }

  function scoreRow(place, score, most) {
    const [, , name, special] = pieces()[place];
    const text = score === null ? say("left_out_score") : number(score, digitsFor(most), shown.signed);
    const fill = make("span", { share: Math.abs(score || 0) / most, className: tone(score, shown.signed) });
    const title = special ? say("special") : "";
    return make("tr", { attributes: { "data-place": place } },
      make("td", { className: "place" }, String(place + 1)),
      make("th", { title, attributes: { scope: "row" } }, isolated(brief(name))),
      make("td", { className: "num" }, text),
      make("td", { className: shown.signed ? "bar signed" : "bar", attributes: { "aria-hidden": "true" } }, fill));
  }

  /** A table whose cells are coloured by their share of their column's largest: {name, title, now, signed, scores, text}. */
  function heat(columns) {
    const corner = make("td", {});
    const top = columns.map(({ name, title, now }) =>
      make("th", { title, className: now ? "now" : "", attributes: { scope: "col" } }, make("span", {}, name)));
    const most = columns.map(({ scores }) => largest(scores));
    const rows = pieces().map(([, , name], place) => {
      const cells = columns.map(({ scores, signed, text }, column) => {
        const score = scores[place];
        if (score === null) return make("td", {}, "\u2013");
        return make("td", { share: Math.abs(score) / most[column], className: tone(score, signed) }, text(score, most[column]));
      });
      return make("tr", { attributes: { "data-place": place } }, make("th", { title: name, attributes: { scope: "row" } }, isolated(brief(name))), ...cells);
    });
    return make("table", {}, make("thead", {}, make("tr", {}, corner, ...top)), make("tbody", {}, ...rows));
  }

  function showDepth() {
    const of = method();
    at("depth-section").hidden = !of.recomputed || maps.layers < 2;
    if (at("depth-section").hidden) return;
    at("depth-lead").textContent = say(of.name === "attention" ? "depth_lead_attention" : VeedorState.differs() ? "depth_lead_uniform" : "depth_lead");
    const digits = largest(shown[state.unit]) < 0.1 ? 1 : 0;
    at("depth").replaceChildren(heat([...Array(maps.layers).keys()].map((below) => {
      const { signed, ...scores } = scoresOf(of.name, below + 1);
      return {
        name: String(below + 1), title: say("layer_column", { layer: below + 1 }), now: below + 1 === state.layer,
        signed, scores: scores[state.unit], text: (score) => percent(score, digits, signed),
      };
    })));
  }

  function showCompared() {
    at("compare-section").hidden = data.methods.length < 2;
    at("compare-lead").textContent = say("compare_lead", { label: data.labels[state.target] });
    at("compare").replaceChildren(heat(data.methods.map(({ name }) => {
      const { signed, ...scores } = scoresOf(name);
      return {
        name: methodName(name), title: methodName(name), now: name === state.method, signed,
        scores: scores[state.unit], text: (score, most) => percent(score / most, 0, signed),
      };
    })));
  }

  // Notes

  function notes() {
    const found = [say("caution")];
    if (data.truncated) found.push(say("truncated"));
    if (maps && maps.causal) found.push(say("causal"));
    if (maps && maps.fused) found.push(say("fused"));
    if (!maps && VeedorState.find("rollout")) found.push(say("no_maps"));
    const slow = data.left_out.map(methodName).join(", ");
    if (slow) found.push(say("slow", { tokens: data.long, methods: slow }));
    if (data.hidden_labels) found.push(say("labels_capped", { labels: data.hidden_labels }));
    return found;
  }

  function showNotes() {
    at("notes").replaceChildren(...notes().map((text) => make("li", {}, text)));
    const failed = data.failed[state.language];
    at("failed").replaceChildren(...failed.map(({ method: name, why }) => make("li", {}, make("strong", {}, name), `: ${why}`)));
    const why = data.doubts[state.method];
    at("unreliable").hidden = !why;
    at("unreliable").textContent = why ? say("unreliable", { method: methodName(state.method), why: why[state.language].join("; ") }) : "";
    showHow();
  }

  function showHow() {
    const of = method();
    const fixed = of.scores[of.targeted ? state.target : 0];
    const options = Object.entries(fixed.options).map(([name, value]) => `${name} = ${value}`).join(", ");
    const flags = fixed.flags.map((flag) => words().flags[flag] || flag).join("; ");
    const facts = of.recomputed ? [] : [["options", options], ["evaluations", String(fixed.nodes)], ["flags", flags]];
    facts.push(["model", data.model], ["weights", data.digest], ["version", `Veedor ${data.version}`]);
    at("how").replaceChildren(...facts.filter(([, text]) => text)
      .flatMap(([name, text]) => [make("dt", {}, say(name)), make("dd", {}, isolated(text))]));
  }

  // All of it

  function present() {
    speak();
    try {
      shown = scoresOf(state.method);
      at("about").textContent = `${aboutParts().join(". ")}.`;
      [showText, showScores, showDepth, showCompared].forEach((part) => part());
    } catch (error) {
      if (error.message !== "empty") throw error;
      at("about").textContent = say("empty_row");
      ["text", "scores", "depth", "compare", "readout"].forEach((id) => at(id).replaceChildren());
      shown = null;
    }
    showControls();
    showNotes();
    if (shown) mark();
    at("result").textContent = JSON.stringify({ ...state, target: data.labels[state.target], scores: shown });
  }

  function change(given) {
    if ("unit" in given) chosen = null;
    VeedorState.choose(given);
    present();
  }

  function keepAddress() {
    location.replace(`#${VeedorState.address()}`);
  }

  let waiting = 0;
  function soon(given) {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => change(given));
  }

  function listen() {
    ["method", "target", "unit", "head", "row", "language"].forEach((name) => {
      at(name).addEventListener("change", (event) => { change({ [name]: event.target.value }); keepAddress(); });
    });
    ["layer", "residual"].forEach((name) => {
      at(name).addEventListener("input", (event) => soon({ [name]: event.target.value }));
      at(name).addEventListener("change", (event) => { change({ [name]: event.target.value }); keepAddress(); });
    });
    at("specials").addEventListener("change", (event) => { change({ specials: event.target.checked ? "drop" : "keep" }); keepAddress(); });
    at("uniform").addEventListener("change", (event) => { change({ reference: event.target.checked ? "uniform" : "none" }); keepAddress(); });
    at("reset").addEventListener("click", () => { chosen = null; VeedorState.reset(); present(); keepAddress(); });
    at("controls").addEventListener("submit", (event) => event.preventDefault());
    window.addEventListener("hashchange", () => { VeedorState.readAddress(); present(); });
    listenToWords();
  }

  function listenToWords() {
    const text = at("text");
    const placeOf = (event) => { const span = event.target.closest("span[role]"); return span && Number(span.dataset.place); };
    const read = (event) => { const place = placeOf(event); if (place !== null) at("readout").textContent = told(place); };
    const back = () => { if (shown) at("readout").textContent = chosen === null ? leading() : told(chosen); };
    text.addEventListener("click", (event) => { const place = placeOf(event); if (place !== null) choosePlace(place); });
    text.addEventListener("keydown", moveAlongText);
    text.addEventListener("focusin", read);
    text.addEventListener("focusout", back);
    text.addEventListener("mouseover", read);
    text.addEventListener("mouseleave", back);
    at("scores").addEventListener("click", (event) => {
      const of = event.target.closest("th[data-key]");
      if (!of) return;
      const first = ["score", "share"].includes(of.dataset.key);
      sorting.down = sorting.key === of.dataset.key ? !sorting.down : first;
      sorting.key = of.dataset.key;
      showScores();
      mark();
      at("scores").querySelector(`th[data-key=${sorting.key}] button`).focus();
    });
  }

  ["language-choice", "controls", "text-help", "how-part"].forEach((id) => { at(id).hidden = false; });
  VeedorState.readAddress();
  listen();
  present();
})();
