/* What the page was told and what its reader chose: data, words, choices (kept in the address after #), and the scores
   that follow from them. No element is touched here but the one that holds the data. */
"use strict";

const VeedorState = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const maps = data.maps && { ...data.maps, values: VeedorRollout.unpack(data.maps.values) };
  const engine = maps && VeedorRollout.engine(maps);
  const start = {
    method: data.method,
    target: 0,
    unit: "words",
    specials: "keep",
    layer: maps ? maps.layers : 0,
    head: "mean",
    residual: 0.5,
    row: "read",
    reference: "none",
    language: data.language,
  };
  const state = { ...start };

  const words = () => data.languages[state.language];

  /** A text of the page with values put in. */
  function say(name, values = null) {
    const text = words().explain[name];
    const told = values ? text.replace(/\{(\w+)\}/g, (_, key) => values[key]) : text;
    return told.replaceAll(" %", "\u00a0%");
  }

  /** A number with this language's decimal mark and a true minus. */
  function number(value, digits, sign = false) {
    const plain = Math.abs(value).toFixed(digits).replace(".", words().decimal);
    const zero = Number(Math.abs(value).toFixed(digits)) === 0;
    return (value < 0 && !zero ? "\u2212" : sign && !zero ? "+" : "") + plain;
  }

  const percent = (share, digits = 0, sign = false) => number(100 * share, digits, sign);
  const methodName = (name) => words().method_names[name] || name;
  const find = (name) => data.methods.find((one) => one.name === name);
  const method = () => find(state.method);
  const pieces = () => data[state.unit];

  /** How the chosen heads are called. */
  function headName(head = state.head) {
    return typeof head === "number" ? say("heads_one", { head: head + 1 }) : say(`heads_${head}`);
  }

  /** How the chosen row is called. */
  function rowName(row = state.row) {
    if (row === "read") return say("row_read");
    return say("row_token", { place: row + 1, token: data.tokens[row][2] });
  }

  function rowWeights() {
    return state.row === "read" ? maps.read : data.tokens.map((_, at) => (at === state.row ? 1 : 0));
  }

  /** Scores of all tokens through layers 1 … upto (rollout), or in layer upto alone (attention). */
  function recomputed(name, upto) {
    const [row, residual] = [rowWeights(), name === "rollout" ? state.residual : 0];
    const found = name === "rollout"
      ? engine.drawn({ row, upto, head: state.head, residual })
      : engine.seen({ row, layer: upto - 1, head: state.head });
    if (!differs()) return Array.from(found);
    const plain = VeedorRollout.uniform({ row, upto: name === "rollout" ? upto : 1, residual });
    return Array.from(found, (score, at) => score - plain[at]);
  }

  const differs = () => Boolean(maps) && maps.causal && state.reference === "uniform";

  /** Null for special tokens where they are left out. */
  function withoutSpecials(tokens) {
    return state.specials === "keep" ? tokens : tokens.map((score, at) => (data.tokens[at][3] ? null : score));
  }

  function toWords(tokens, additive) {
    const found = VeedorRollout.words(tokens, data.token_word, data.words.length, additive);
    return found.map((score) => (score === null ? 0 : score));
  }

  /** A method's scores under the present choices: tokens, words, whether they are signed, and what special tokens hold. */
  function scoresOf(name, upto = state.layer) {
    const of = find(name);
    if (of.recomputed) {
      const tokens = recomputed(name, upto);
      return told(tokens, toWords(tokens, false), differs(), differs() ? null : sumOfSpecials(tokens));
    }
    const fixed = of.scores[of.targeted ? state.target : 0];
    const all = fixed.tokens.reduce((sum, score) => sum + Math.abs(score || 0), 0);
    return told(fixed.tokens, fixed.words, of.signed, all > 0 ? sumOfSpecials(fixed.tokens) / all : null);
  }

  function told(tokens, wordScores, signed, specials) {
    return { tokens: withoutSpecials(tokens), words: wordScores, signed, specials };
  }

  function sumOfSpecials(tokens) {
    return tokens.reduce((sum, score, at) => sum + (data.tokens[at][3] ? Math.abs(score || 0) : 0), 0);
  }

  /** The largest score by size; 1 where all are 0. */
  function largest(scores) {
    return scores.reduce((most, score) => Math.max(most, Math.abs(score || 0)), 0) || 1;
  }

  /** What can be chosen for each name, so that an address cannot ask for anything else. */
  const readers = {
    method: (text) => (find(text) ? text : undefined),
    target: (text) => [data.labels.indexOf(text)].find((at) => at >= 0),
    unit: (text) => ["words", "tokens"].find((one) => one === text),
    specials: (text) => ["keep", "drop"].find((one) => one === text),
    reference: (text) => ["none", "uniform"].find((one) => one === text),
    language: (text) => Object.keys(data.languages).find((one) => one === text),
    layer: (text) => place(text, maps ? maps.layers : 0),
    head: (text) => (["mean", "max", "min"].includes(text) ? text : fromOne(text, maps && !maps.fused ? maps.heads : 0)),
    row: (text) => (text === "read" ? text : fromOne(text, maps ? maps.tokens : 0)),
    residual: (text) => (/^(0?\.\d+|[01](\.0*)?)$/.test(text) ? Number(text) : undefined),
  };

  const place = (text, most) => (/^\d{1,6}$/.test(text) && text >= 1 && text <= most ? Number(text) : undefined);
  const fromOne = (text, most) => (place(text, most) === undefined ? undefined : Number(text) - 1);

  /** Take choices as text, by name; what is not known stays as it was. */
  function choose(given) {
    Object.entries(given).forEach(([name, text]) => {
      const value = Object.hasOwn(readers, name) ? readers[name](String(text)) : undefined;
      if (value !== undefined) state[name] = value;
    });
  }

  function written(name) {
    if (name === "target") return data.labels[state.target];
    return typeof state[name] === "number" && ["head", "row"].includes(name) ? state[name] + 1 : state[name];
  }

  /** The choices that differ from the start, as they stand in the address. */
  function address() {
    const changed = Object.keys(state).filter((name) => state[name] !== start[name]);
    return new URLSearchParams(changed.map((name) => [name, written(name)])).toString();
  }

  function readAddress() {
    Object.assign(state, start);
    choose(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
  }

  const reset = () => Object.assign(state, start, { language: state.language });

  return {
    data, maps, state, say, number, percent, words, methodName, find, method, pieces, headName, rowName, differs,
    scoresOf, largest, choose, address, readAddress, reset, written,
  };
})();
