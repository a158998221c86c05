/* Attention rollout of one text (Abnar and Zuidema, 2020, equation 1 and appendix A.1), a row at a time.

   R = A_L … A_1 with A_l = (1 - residual) fused attention_l + residual I: higher layers multiply from the left, so a row
   of R goes down the layers as row · A_L · … · A_1. One head k is followed as in appendix A.1: head k of the chosen layer,
   heads fused by their mean below. Pure functions on numbers, in double precision; nothing here knows a page. */
"use strict";

const VeedorRollout = (() => {
  /** base64 of little-endian float32 -> Float32Array. */
  function unpack(base64) {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Float32Array.from({ length: bytes.length / 4 }, (_, at) => view.getFloat32(4 * at, true));
  }

  /** One layer's map (n · n) by "mean", "max" or "min" of its heads, or that of one head (a number, the first is 0). */
  function fused(maps, layer, head) {
    const size = maps.tokens * maps.tokens;
    const from = layer * maps.heads * size;
    const one = (at) => maps.values.subarray(from + at * size, from + (at + 1) * size);
    if (typeof head === "number") return Float64Array.from(one(head));
    const found = Float64Array.from(one(0));
    for (let at = 1; at < maps.heads; at += 1) {
      one(at).forEach((weight, cell) => {
        if (head === "mean") found[cell] += weight;
        else found[cell] = head === "max" ? Math.max(found[cell], weight) : Math.min(found[cell], weight);
      });
    }
    return head === "mean" ? found.map((weight) => weight / maps.heads) : found;
  }

  /** A_l, (n · n). Rows of "max" and "min" are made to sum to 1; a row of zeros stays, and `through` refuses it. */
  function mixed(maps, layer, head, residual) {
    const n = maps.tokens;
    const mix = fused(maps, layer, head);
    for (let row = 0; row < n; row += 1) {
      let total = 0;
      for (let cell = row * n; cell < (row + 1) * n; cell += 1) {
        mix[cell] = (1 - residual) * mix[cell] + (cell === row * n + row ? residual : 0);
        total += mix[cell];
      }
      if ((head === "max" || head === "min") && total > 0) {
        for (let cell = row * n; cell < (row + 1) * n; cell += 1) mix[cell] /= total;
      }
    }
    return mix;
  }

  /** row · A, (n). Throws "empty" where something flows through a row that holds only zeros. */
  function through(flow, mix, whole) {
    const n = flow.length;
    const below = new Float64Array(n);
    for (let row = 0; row < n; row += 1) {
      if (flow[row] === 0) continue;
      let total = 0;
      for (let column = 0; column < n; column += 1) {
        const weight = mix[row * n + column];
        total += weight;
        below[column] += flow[row] * weight;
      }
      if (whole && total === 0) throw new Error("empty");
    }
    return below;
  }

  /** Keeps the mixed maps of one residual weight: a slider asks for the same ones again and again. */
  function engine(maps) {
    let kept = new Map();
    let of = null;

    function map(layer, head, residual) {
      if (of !== residual) kept = new Map();
      of = residual;
      const key = `${layer} ${head}`;
      if (!kept.has(key)) kept.set(key, mixed(maps, layer, head, residual));
      return kept.get(key);
    }

    /** What `row` (n) draws from each input through layers 1 … upto (upto counts layers). */
    function drawn({ row, upto, head, residual }) {
      const below = typeof head === "number" ? "mean" : head;
      let flow = Float64Array.from(row);
      for (let layer = upto - 1; layer >= 0; layer -= 1) {
        const fusion = layer === upto - 1 ? head : below;
        flow = through(flow, map(layer, fusion, residual), fusion === "max" || fusion === "min");
      }
      return flow;
    }

    /** What `row` sees in one layer alone (the first is 0), without the residual stream. */
    function seen({ row, layer, head }) {
      return through(Float64Array.from(row), mixed(maps, layer, head, 0), head === "max" || head === "min");
    }

    return { drawn, seen };
  }

  /** The same row where every token attends alike to itself and all before it: what position alone gives. */
  function uniform({ row, upto, residual }) {
    let flow = Float64Array.from(row);
    for (let layer = 0; layer < upto; layer += 1) {
      const below = new Float64Array(flow.length);
      let after = 0;
      for (let at = flow.length - 1; at >= 0; at -= 1) {
        after += flow[at] / (at + 1);
        below[at] = residual * flow[at] + (1 - residual) * after;
      }
      flow = below;
    }
    return flow;
  }

  /** Sub-word scores to word scores: sums where scores add up, else maxima; null where a word has no token. */
  function words(scores, tokenWord, count, additive) {
    const found = new Array(count).fill(null);
    tokenWord.forEach((word, at) => {
      const score = scores[at];
      if (word < 0 || score === null) return;
      if (found[word] === null) found[word] = score;
      else found[word] = additive ? found[word] + score : Math.max(found[word], score);
    });
    return found;
  }

  return { unpack, fused, mixed, engine, uniform, words };
})();

if (typeof module !== "undefined") module.exports = VeedorRollout;
