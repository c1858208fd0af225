"use strict";
// All that is shown comes from the page itself: released values and public numbers.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { words, everywhere, topics, divergence, level } = data;
  const byId = (id) => document.getElementById(id);
  const START = { topic: topics[0].number, compare: 0, word: "", relevance: 0.6, order: "relevance",
    n: 15, find: "" };
  let state = { ...START };

  // ---------------------------------------------------------------- numbers in words

  const percent = (p) => {
    const value = 100 * p;
    if (value === 0) return "0 %";
    return (value >= 10 ? value.toFixed(1) : value.toPrecision(2).replace(/e.*/, "")) + " %";
  };
  const share = (p) => (p < 0.00005 ? "< 0.01 %" : percent(p));
  const bounds = (topic, w) => {
    const reach = topic.reach[w];
    return [Math.max(topic.p[w] - reach, 0), Math.min(topic.p[w] + reach, 1)];
  };
  const between = (topic, w) => {
    const [low, high] = bounds(topic, w);
    return `${level} % interval ${share(low)} to ${share(high)}`;
  };
  const describe = (topic, w) =>
    `${words[w]}: ${share(topic.p[w])} of topic ${topic.number}; ${between(topic, w)}; ` +
    `${share(everywhere[w])} of all words`;
  const topicOf = (number) => topics.find((topic) => topic.number === number);
  const label = (topic) => `Topic ${topic.number}`;

  // ---------------------------------------------------------------- ranking

  const score = (topic, w, relevance) => {
    if (relevance === 1) return Math.log(topic.p[w]);
    const sure = topic.p[w] - 2 * topic.std[w];
    if (!(sure > everywhere[w])) return -Infinity;
    return Math.log(sure) - (1 - relevance) * Math.log(everywhere[w]);
  };
  const all = words.map((_, w) => w);
  const ranked = (topic) => {
    let scores = all.map((w) => score(topic, w, state.relevance));
    const known = (w) => scores[w] > -Infinity;
    // The most probable words of a topic that no word is known to set apart.
    if (!all.some(known)) scores = all.map((w) => score(topic, w, 1));
    const leading = (a, b) => scores[b] - scores[a] || topic.p[b] - topic.p[a];
    const chosen = all.filter(known).sort(leading).slice(0, state.n);
    if (state.order === "probability") chosen.sort((a, b) => topic.p[b] - topic.p[a]);
    if (state.order === "alphabet") chosen.sort((a, b) => words[a].localeCompare(words[b]));
    return chosen;
  };

  // ---------------------------------------------------------------- drawing

  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const bar = (value, largest, low, high, overall, second) => {
    const track = make("span", "track");
    const wide = (x) => `${Math.min(100 * x / largest, 100).toFixed(2)}%`;
    const fill = make("i", second ? "second" : "");
    fill.style.width = wide(value);
    track.append(fill);
    if (high > low) {
      const range = make("i", "range");
      range.style.left = wide(low);
      range.style.width = `${(100 * (Math.min(high, largest) - low) / largest).toFixed(2)}%`;
      track.append(range);
    }
    if (overall !== undefined && overall < largest) {
      const tick = make("i", "all");
      tick.style.left = wide(overall);
      track.append(tick);
    }
    return track;
  };
  const rowOf = (text, parts, go, className = "row") => {
    const item = make("li");
    const button = make("button", className);
    button.type = "button";
    button.append(...parts);
    button.setAttribute("aria-label", text);
    button.dataset.tip = text;
    button.addEventListener("click", go);
    item.append(button);
    return item;
  };
  const nameOf = (w, unsure) => make("span", unsure ? "name unsure" : "name", words[w]);
  const value = (p) => make("span", "value", share(p));
  const pick = (changes) => () => go(changes);

  const drawTopic = (topic) => {
    const chosen = ranked(topic);
    const largest = Math.max(...chosen.map((w) => bounds(topic, w)[1]), 1e-9);
    const rows = chosen.map((w) => {
      const [low, high] = bounds(topic, w);
      const unsure = topic.p[w] <= 2 * topic.std[w];
      const text = describe(topic, w) + (unsure ? "; noise could have put it here" : "");
      return rowOf(text, [nameOf(w, unsure),
        bar(topic.p[w], largest, low, high, everywhere[w]), value(topic.p[w])],
        pick({ word: words[w] }));
    });
    let note = `${percent(topic.share)} of the words`
      + `. Bars: probability; tick: all texts; italic: noise could have put the `
      + `word here; thin line: ${level} % interval, ${data.counted}.`;
    if (topic.hidden) {
      note = "Hidden by noise: no word is known to be more likely here than in all texts. " + note;
    }
    return [label(topic), note, rows];
  };

  const drawTwo = (one, two) => {
    const ordered = [...all].sort((a, b) =>
      Math.abs(two.p[b] - one.p[b]) - Math.abs(two.p[a] - one.p[a])).slice(0, state.n);
    ordered.sort((a, b) => (one.p[b] - two.p[b]) - (one.p[a] - two.p[a]));
    const largest = Math.max(...ordered.map((w) =>
      Math.max(bounds(one, w)[1], bounds(two, w)[1])), 1e-9);
    const rows = ordered.map((w) => {
      const bars = [[one, false], [two, true]].map(([topic, second]) =>
        bar(topic.p[w], largest, ...bounds(topic, w), undefined, second));
      const text = `${words[w]}: ${share(one.p[w])} of topic ${one.number} ` +
        `(${between(one, w)}), ${share(two.p[w])} of topic ${two.number} (${between(two, w)})`;
      return rowOf(text, [value(one.p[w]), bars[0], nameOf(w), bars[1], value(two.p[w])],
        pick({ word: words[w] }), "row pair");
    });
    const apart = divergence[topics.indexOf(one)][topics.indexOf(two)];
    const note = `Words that tell them apart, topic ${one.number} on the left. ` +
      `Divergence ${apart.toFixed(2)}: 0 is the same topic, 1 shares no word.`;
    return [`Topic ${one.number} and topic ${two.number}`, note, rows];
  };

  const held = (topic, w) => {
    const total = topics.reduce((sum, other) => sum + other.share * other.p[w], 0);
    return total > 0 ? topic.share * topic.p[w] / total : 0;
  };
  const drawWord = (w) => {
    const ordered = [...topics].sort((a, b) => b.p[w] - a.p[w]);
    const largest = Math.max(...topics.map((topic) => bounds(topic, w)[1]), 1e-9);
    const rows = ordered.map((topic) => rowOf(
      `${describe(topic, w)}; this topic has ${percent(held(topic, w))} of its uses`,
      [make("span", "name", label(topic)),
        bar(topic.p[w], largest, ...bounds(topic, w), everywhere[w]), value(topic.p[w])],
      pick({ topic: topic.number, compare: 0, word: "" })));
    const note = `${share(everywhere[w])} of all words (tick). The map shows which topics use it.`;
    return [`“${words[w]}” in every topic`, note, rows];
  };

  const drawFound = (wanted) => {
    const found = all.filter((w) => words[w].toLowerCase().includes(wanted.toLowerCase()));
    const shown = found.sort((a, b) => everywhere[b] - everywhere[a]).slice(0, state.n);
    const rows = shown.map((w) => {
      const best = topics.reduce((a, b) => (held(b, w) > held(a, w) ? b : a));
      return rowOf(`${words[w]}: ${share(everywhere[w])} of all words, most in topic ${best.number}`,
        [nameOf(w), bar(held(best, w), 1, 0, 0), make("span", "value", label(best))],
        pick({ word: words[w], find: "" }));
    });
    const note = found.length
      ? "Bars: how much of a word's uses the topic has that uses it most."
      : "No word of this page has these letters.";
    return [`${found.length} ${found.length === 1 ? "word" : "words"} with “${wanted}”`, note, rows];
  };

  const mark = () => {
    const w = words.indexOf(state.word);
    for (const link of document.querySelectorAll(".map a")) {
      const topic = topicOf(Number(link.dataset.topic));
      const circle = link.querySelector("circle");
      const chosen = w < 0 && !state.find &&
        [state.topic, state.compare].includes(topic.number);
      if (chosen) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      link.toggleAttribute("data-second", chosen && topic.number === state.compare);
      circle.style.fillOpacity = w < 0 ? "" : (0.05 + 0.9 * held(topic, w)).toFixed(3);
    }
  };

  const draw = () => {
    const w = words.indexOf(state.word);
    const two = state.compare ? topicOf(state.compare) : undefined;
    const [title, note, rows] = state.find ? drawFound(state.find)
      : w >= 0 ? drawWord(w)
        : two ? drawTwo(topicOf(state.topic), two) : drawTopic(topicOf(state.topic));
    byId("panel-title").textContent = title;
    byId("panel-note").textContent = note;
    byId("rows").replaceChildren(...rows);
    byId("more").hidden = (w >= 0 && !state.find) || rows.length < state.n ||
      state.n >= words.length;
    byId("back").hidden = w < 0 && !two && !state.find;
    for (const id of ["find", "order", "relevance"]) {
      if (byId(id).value !== String(state[id])) byId(id).value = state[id];
    }
    byId("relevance-value").textContent = Number(state.relevance).toFixed(2);
    hideTip();
    mark();
  };

  // ---------------------------------------------------------------- state and its link

  const written = () => {
    const parts = new URLSearchParams();
    for (const [key, value] of Object.entries(state)) {
      if (value !== START[key]) parts.set(key, value);
    }
    return parts.toString();
  };
  const read = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    const next = { ...START };
    for (const key of Object.keys(START)) {
      if (!given.has(key)) continue;
      const text = given.get(key);
      const number = Number(text);
      if (typeof START[key] === "string") next[key] = text;
      else if (Number.isFinite(number)) next[key] = number;
    }
    if (!topicOf(next.topic)) next.topic = START.topic;
    if (!topicOf(next.compare) || next.compare === next.topic) next.compare = 0;
    next.relevance = Math.min(Math.max(next.relevance, 0), 1);
    next.n = Math.min(Math.max(Math.round(next.n), 5), words.length);
    if (!["relevance", "probability", "alphabet"].includes(next.order)) next.order = START.order;
    return next;
  };
  // In place while a slider moves or letters come in; elsewhere Back goes back.
  const go = (changes, inPlace = false) => {
    state = { ...state, ...changes };
    const link = `#${written()}`;
    if (inPlace) history.replaceState(null, "", link);
    else if (location.hash !== link) history.pushState(null, "", link);
    draw();
  };
  const choose = (number) => {
    const shown = !state.word && !state.find;
    if (shown && state.topic !== number && !state.compare) go({ compare: number });
    else go({ topic: number, compare: 0, word: "", find: "" });
  };
  const step = (by) => {
    const place = topics.indexOf(topicOf(state.topic)) + by;
    const next = topics[(place + topics.length) % topics.length];
    go({ topic: next.number, compare: 0, word: "", find: "" });
  };

  // ---------------------------------------------------------------- controls

  const tip = byId("tip");
  const hideTip = () => { tip.hidden = true; };
  const showTip = (event) => {
    const row = event.target.closest("[data-tip]");
    if (!row) { hideTip(); return; }
    tip.textContent = row.dataset.tip;
    tip.hidden = false;
    const box = row.getBoundingClientRect();
    const panel = tip.parentElement.getBoundingClientRect();
    tip.style.top = `${box.bottom - panel.top + 4}px`;
  };
  for (const event of ["mouseover", "focusin"]) byId("rows").addEventListener(event, showTip);
  for (const event of ["mouseleave", "focusout"]) byId("rows").addEventListener(event, hideTip);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

  byId("find").addEventListener("input", (event) => go({ find: event.target.value }, true));
  byId("order").addEventListener("change", (event) =>
    go({ order: event.target.value, word: "", find: "", compare: 0 }));
  byId("relevance").addEventListener("input", (event) =>
    go({ relevance: Number(event.target.value), word: "", find: "", compare: 0 }, true));
  byId("more").addEventListener("click", () => go({ n: Math.min(state.n + 15, words.length) }));
  byId("back").addEventListener("click", () => go({ compare: 0, word: "", find: "" }));
  byId("previous").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  for (const link of document.querySelectorAll(".map a")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      choose(Number(link.dataset.topic));
    });
  }
  const follow = () => { state = read(); draw(); };
  window.addEventListener("hashchange", follow);
  window.addEventListener("popstate", follow);

  byId("link").addEventListener("click", async () => {
    const said = byId("said");
    try {
      await navigator.clipboard.writeText(location.href);
      said.textContent = "Link copied.";
    } catch {
      said.textContent = "The address bar has the link.";
    }
  });

  const quoted = (text) => {
    const cell = String(text);
    // A spreadsheet must not take a word for a formula.
    const safe = /^[=+\-@\t\r]/.test(cell) && Number.isNaN(Number(cell)) ? `'${cell}` : cell;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  byId("csv").addEventListener("click", () => {
    const lines = [["topic", "share_of_words", "hidden", "rank", "word", "probability",
      "low", "high", "all_texts"]];
    for (const topic of topics) {
      ranked(topic).forEach((w, place) => lines.push([topic.number, Number(topic.share.toFixed(3)),
        topic.hidden ? "yes" : "no", place + 1, words[w], topic.p[w],
        ...bounds(topic, w).map((x) => Number(x.toPrecision(4))), everywhere[w]]));
    }
    const text = lines.map((cells) => cells.map(quoted).join(",")).join("\r\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = "topics.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    byId("said").textContent = `${lines.length - 1} rows written to topics.csv.`;
  });

  // ---------------------------------------------------------------- table, printing

  const table = byId("topics-table");
  for (const head of table.querySelectorAll("th[data-sort]")) {
    const button = make("button", "", head.textContent);
    button.type = "button";
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.querySelectorAll("th[aria-sort]")) {
        other.removeAttribute("aria-sort");
      }
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      const key = head.dataset.sort;
      rows.sort((a, b) => (down ? -1 : 1) * (Number(a.dataset[key]) - Number(b.dataset[key])));
      table.tBodies[0].append(...rows);
    });
    head.replaceChildren(button);
  }
  const folded = [...document.querySelectorAll("details")];
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = folded.filter((part) => !part.open);
    for (const part of opened) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of opened) part.open = false;
  });
  for (const part of document.querySelectorAll("[data-live]")) part.hidden = false;
  follow();
})();
