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
    }, { rootMargin: "-70px 0px -60% 0px" });
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
