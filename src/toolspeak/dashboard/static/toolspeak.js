// The dashboard's own script: the theme, times in the browser's zone, live rows, copying. Pages work without it.
"use strict";
(() => {
  // ---------------------------------------------------------------- theme: before the page is drawn, against a flash
  const root = document.documentElement;
  const kept = () => { try { return localStorage.getItem("toolspeak-theme"); } catch { return null; } };
  if (["light", "dark"].includes(kept())) root.dataset.theme = kept();

  function toggleTheme() {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    try { localStorage.setItem("toolspeak-theme", root.dataset.theme); } catch { /* private windows */ }
  }

  // ---------------------------------------------------------------- times
  function localTimes(scope) {
    for (const time of scope.querySelectorAll("time[datetime]")) {
      const moment = new Date(time.dateTime);
      if (isNaN(moment)) continue;
      time.textContent = time.dataset.whole === undefined ? moment.toLocaleTimeString([], { hour12: false }) : moment.toLocaleString();
      time.title = moment.toLocaleString();
    }
  }

  function tick() {
    for (const cell of document.querySelectorAll("[data-elapsed]")) {
      const seconds = Math.max(0, Date.now() / 1000 - Number(cell.closest("[data-started]").dataset.started));
      cell.textContent = seconds < 60 ? `${seconds.toFixed(0)} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
    }
  }

  // ---------------------------------------------------------------- live rows
  const MOST_ROWS = 200;
  let source = null;

  function showLive(isOn) {
    const live = document.querySelector("[data-live]");
    if (!live) return;
    live.hidden = false;
    live.classList.toggle("is-off", !isOn);
    live.querySelector("[data-live-text]").textContent = isOn ? "live" : "reconnecting";
  }

  function watch() {
    if (source) source.close();
    source = null;
    const list = document.querySelector("[data-events]");
    if (!list || !list.querySelector("[data-rows]")) return;
    source = new EventSource(list.dataset.events);
    source.onopen = () => showLive(true);
    source.onerror = () => showLive(false);
    source.addEventListener("row", (event) => showRow(list, event.data));
    source.addEventListener("gone", (event) => document.getElementById(event.data)?.remove());
  }

  function watchAgain(event) {
    if (event.detail.target.id === "requests") watch();
    if (event.detail.target.id === "response") followSections();
  }

  function showRow(list, html) {
    const template = document.createElement("template");
    template.innerHTML = html; // our own template, with every value escaped; the policy of the page runs no script in it
    const row = template.content.querySelector("tr");
    const rows = list.querySelector("[data-rows]");
    if (!row || !rows) return;
    localTimes(row);
    const old = document.getElementById(row.id);
    if (old) {
      const hadFocus = old.contains(document.activeElement);
      old.replaceWith(row);
      if (hadFocus) row.querySelector("a")?.focus();
    } else {
      row.classList.add("is-new");
      rows.prepend(row);
      while (rows.children.length > MOST_ROWS) rows.lastElementChild.remove();
    }
    list.querySelector("table").hidden = false;
    const empty = list.querySelector("[data-empty]");
    if (empty) empty.hidden = true;
    tick();
  }

  // ---------------------------------------------------------------- the section that is read
  function followSections() {
    const links = new Map([...document.querySelectorAll(".side a")].map((link) => [link.hash.slice(1), link]));
    if (!links.size) return;
    const seen = new Set();
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) entry.isIntersecting ? seen.add(entry.target.id) : seen.delete(entry.target.id);
      const here = [...links.keys()].find((id) => seen.has(id));
      if (!here) return;
      for (const [id, link] of links) link.classList.toggle("is-here", id === here);
    }, { rootMargin: `-${innerWidth > 860 ? 72 : 108}px 0px -50% 0px` });
    for (const id of links.keys()) { const section = document.getElementById(id); if (section) observer.observe(section); }
  }

  // ---------------------------------------------------------------- copying
  async function copy(button) {
    const text = document.getElementById(button.dataset.copy)?.textContent ?? "";
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch { // without TLS a browser may refuse: then the text is shown to be copied by hand
      document.getElementById(button.dataset.copy).hidden = false;
      button.textContent = "Select and copy";
    }
    setTimeout(() => { button.textContent = label; }, 1600);
  }

  document.addEventListener("click", (event) => {
    const toggle = event.target.closest("[data-theme-toggle]");
    if (toggle) toggleTheme();
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
    const search = document.querySelector("input[type=search]");
    if (search) { event.preventDefault(); search.focus(); }
  });
  document.addEventListener("DOMContentLoaded", () => {
    localTimes(document);
    tick();
    setInterval(tick, 1000);
    watch();
    followSections();
    document.body.addEventListener("htmx:afterSwap", (event) => { localTimes(document); watchAgain(event); });
  });
})();

// ==================================================================== models, runs, playground
(() => {
  // Puts a part of the page in the place of the element with its id; a new round goes to the end.
  function showPart(html) {
    const template = document.createElement("template");
    template.innerHTML = html; // our own template, with every value escaped; the policy of the page runs no script in it
    const part = template.content.firstElementChild;
    if (!part) return;
    for (const time of part.querySelectorAll("time[datetime]")) time.textContent = new Date(time.dateTime).toLocaleTimeString([], { hour12: false });
    const old = document.getElementById(part.id);
    if (!old) { document.getElementById("rounds")?.append(part); return; }
    const asked = (scope) => scope.querySelector(".decision input[name=call]")?.value;
    const isTyping = old.contains(document.activeElement) && document.activeElement.matches("input[type=text]");
    if (isTyping && asked(old) === asked(part)) return; // a reason is being typed, and its call still waits
    if (old.matches("details.round") && old.dataset.touched) { part.open = old.open; part.dataset.touched = "1"; }
    for (const inner of old.querySelectorAll("details[open] > summary")) {
      const same = [...part.querySelectorAll("details > summary")].find((one) => one.textContent === inner.textContent);
      if (same) same.parentElement.open = true;
    }
    old.replaceWith(part);
    if (window.htmx) window.htmx.process(part);
  }

  // A person who opens or closes a round decides; until then a round is open while it happens.
  document.addEventListener("click", (event) => {
    const round = event.target.closest("details.round > summary")?.parentElement;
    if (round) round.dataset.touched = "1";
  });

  function followRun() {
    const run = document.querySelector("[data-run-events]");
    if (!run) return;
    const live = document.querySelector("[data-live]");
    const source = new EventSource(run.dataset.runEvents);
    const show = (isOn) => {
      if (!live) return;
      live.hidden = false;
      live.classList.toggle("is-off", !isOn);
      live.querySelector("[data-live-text]").textContent = isOn ? "live" : "reconnecting";
    };
    source.onopen = () => show(true);
    source.onerror = () => show(false);
    source.addEventListener("part", (event) => showPart(event.data));
    source.addEventListener("over", () => { source.close(); if (live) live.hidden = true; });
  }

  // ---------------------------------------------------------------- playground
  let playing = null;

  async function playColumn(form, column, signal) {
    const body = new URLSearchParams(new FormData(form));
    body.set("column", column.dataset.column);
    const response = await fetch(form.action, { method: "POST", body, signal, headers: { "hx-request": "true" } });
    if (response.status === 401) { location.assign("/ui/login"); return; }
    if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
      column.innerHTML = await response.text(); // an error, rendered by our own template
      return;
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const frames = (rest + value).split("\n\n");
      rest = frames.pop();
      const last = frames.filter((frame) => frame.startsWith("event: part\n")).pop(); // each frame is the whole column
      if (last) showPart(last.split("\n").slice(1).map((line) => line.replace(/^data: ?/, "")).join("\n"));
    }
  }

  function say(number, words) {
    const column = document.getElementById(`column-${number}`);
    const line = document.createElement("p");
    line.className = "muted";
    line.textContent = words;
    column.replaceChildren(line);
    column.removeAttribute("data-started");
    column.setAttribute("aria-busy", "false");
  }

  async function play(form) {
    playing?.abort();
    const mine = new AbortController();
    playing = mine;
    const stop = form.querySelector("[data-play-stop]");
    stop.hidden = false;
    await Promise.all([...form.querySelectorAll("[data-column]")].map(async (column) => {
      const number = column.dataset.column;
      if (!form.elements[`way_${number}`].value) { say(number, "Empty."); return; }
      say(number, "Sending …");
      try { await playColumn(form, document.getElementById(`column-${number}`), mine.signal); }
      catch { say(number, mine.signal.aborted ? "Stopped." : "The gateway does not answer."); }
    }));
    if (playing === mine) stop.hidden = true;
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-playground]")) return;
    event.preventDefault();
    play(event.target);
  });
  document.addEventListener("click", (event) => { if (event.target.closest("[data-play-stop]")) playing?.abort(); });
  document.addEventListener("DOMContentLoaded", followRun);
})();
