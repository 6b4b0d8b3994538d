// What the pages do in a browser beyond htmx: ages, the theme, keys, and streams of hidden tabs. Without it
// every page still works, and shows what was so when it was loaded.
"use strict";
(() => {
  const root = document.documentElement;

  // Ages go on between updates, in the form that the server writes.
  const age = (then, now) => {
    const minutes = Math.floor(Math.max(now - then, 0) / 60000);
    if (minutes < 1) return "";
    if (minutes < 60) return minutes + "m";
    if (minutes < 48 * 60) return Math.floor(minutes / 60) + "h" + String(minutes % 60).padStart(2, "0") + "m";
    return Math.floor(minutes / 1440) + "d";
  };
  // The clock of the browser may be wrong: ages count by that of the server.
  const ahead = Date.now() - Date.parse(root.dataset.now || new Date().toISOString());
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
  const dated = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
  const full = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
  const showTimes = () => {
    const now = Date.now() - ahead;
    for (const e of document.querySelectorAll("time[data-as]")) {
      const at = Date.parse(e.dateTime);
      if (Number.isNaN(at)) continue;
      const text = age(at, now);
      const shown = { ago: text ? text + " ago" : "just now", age: text || "<1m", clock: clock.format(at), dated: dated.format(at) }[e.dataset.as];
      if (e.textContent !== shown) e.textContent = shown;
      const title = full.format(at);
      if (e.title !== title) e.title = title;
    }
  };

  // What somebody opened stays open when the page is updated.
  if (window.Idiomorph) {
    Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) => !(name === "open" && node.tagName === "DETAILS");
  }

  // What is not filled in is not asked for, and an expression that is wrong is marked at its field.
  document.addEventListener("htmx:configRequest", (e) => {
    for (const [name, value] of [...e.detail.formData]) if (value === "") e.detail.formData.delete(name);
  });
  const markExpression = () => {
    const field = document.getElementById("on");
    if (field) field.setAttribute("aria-invalid", document.querySelector("#on-error .notice") ? "true" : "false");
  };
  document.addEventListener("htmx:afterSettle", markExpression);

  const state = (word, text) => {
    for (const e of document.querySelectorAll("[data-live]")) {
      if (e.dataset.state !== word) { e.dataset.state = word; e.textContent = text; }
    }
  };
  const lost = () => state("off", "Reconnecting");
  // What is updated is not current where the page says why the server does not know what is.
  const showState = () => {
    if (source?.readyState === EventSource.OPEN) document.querySelector("#live [data-stale]") ? state("stale", "Not current") : state("on", "Live");
  };

  // A browser has only a few connections to one server: tabs that nobody sees give theirs back, and
  // load the page again when they are looked at.
  let source = null, dropped = false;
  document.addEventListener("htmx:sseOpen", (e) => { source = e.detail.source; dropped = false; showState(); });
  document.addEventListener("htmx:sseError", lost);
  document.addEventListener("htmx:sseMessage", showState);
  document.addEventListener("htmx:afterSettle", showState);
  // What has ended does not change any more.
  document.addEventListener("htmx:sseClose", (e) => {
    if (e.detail.type === "message") { source = null; for (const l of document.querySelectorAll("[data-live]")) l.hidden = true; }
  });
  document.addEventListener("htmx:sseMessage", showTimes);
  document.addEventListener("htmx:afterSettle", showTimes);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && source) {
      source.close();
      source = null;
      dropped = true;
    } else if (!document.hidden && dropped) {
      htmx.ajax("GET", location.pathname + location.search, { target: "#live", select: "#live", swap: "outerHTML" });
    }
  });

  const themes = ["system", "light", "dark"];
  const button = document.querySelector("[data-theme-toggle]");
  if (button) {
    const show = () => {
      const now = root.dataset.theme || "system";
      button.querySelector("span").textContent = { system: "System theme", light: "Light theme", dark: "Dark theme" }[now];
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      const next = themes[(themes.indexOf(root.dataset.theme || "system") + 1) % themes.length];
      if (next === "system") delete root.dataset.theme; else root.dataset.theme = next;
      try { localStorage.setItem("muster-theme", next); } catch { /* it lasts as long as the page */ }
      show();
    });
    show();
  }

  // The search field suggests nodes; one that is chosen is opened.
  const find = document.getElementById("find"), suggestions = document.getElementById("found");
  let asked = 0;
  if (find && suggestions) find.addEventListener("input", async (e) => {
    const chosen = !(e instanceof InputEvent) || e.inputType === "insertReplacementText";
    if (chosen && [...suggestions.options].some((o) => o.value === find.value)) {
      location.href = "/nodes/" + encodeURIComponent(find.value);
      return;
    }
    const mine = ++asked, text = find.value.trim();
    await new Promise((resume) => setTimeout(resume, 200));
    if (mine !== asked || text === "") return;
    try {
      const answer = await fetch("/api/v1/nodes?limit=8&search=" + encodeURIComponent(text));
      if (!answer.ok || mine !== asked) return;
      suggestions.replaceChildren(...(await answer.json()).rows.map((row) => {
        const option = document.createElement("option");
        option.value = row.node;
        return option;
      }));
    } catch { /* without suggestions the field searches all the same */ }
  });

  // "/" goes to the search, j and k along what can be opened in a list, Escape out of a field.
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
    const typing = e.target.matches("input, select, textarea, [contenteditable]");
    if (typing) {
      if (e.key === "Escape") e.target.blur();
      return;
    }
    if (e.key === "/") {
      const field = document.querySelector("main [data-search]") || document.querySelector("[data-search]");
      if (field) { e.preventDefault(); field.focus(); field.select(); }
    } else if (e.key === "j" || e.key === "k") {
      const all = [...document.querySelectorAll("main [data-row]")];
      if (all.length === 0) return;
      const at = all.indexOf(document.activeElement);
      const next = at < 0 ? 0 : Math.min(Math.max(at + (e.key === "j" ? 1 : -1), 0), all.length - 1);
      all[next].focus();
    }
  });

  showTimes();
  setInterval(showTimes, 15000);
})();
