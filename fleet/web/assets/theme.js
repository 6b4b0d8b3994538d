// Runs before the page is drawn, so that a chosen theme does not flash.
"use strict";
try {
  const chosen = localStorage.getItem("muster-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* without storage the theme is that of the system */ }
