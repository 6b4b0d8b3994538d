// What the tests in a browser share: how pages are opened, and what is wrong with one.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import path from 'node:path';

const require = createRequire(path.join(process.env.MODULES, 'node_modules', 'x.js'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
export const base = process.env.BASE.replace(/\/$/, '');
const shots = process.env.SHOTS;

export const screens = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 900 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 900 } },
  narrow: { colorScheme: 'light', viewport: { width: 360, height: 740 } },
};

// What the colours and the width of a screen do not change is looked at once.
const rules = {
  light: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  dark: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] },
  narrow: { type: 'rule', values: ['target-size', 'scrollable-region-focusable', 'region'] },
};

const problems = [];
export const problem = (text) => problems.push(text.replace(/\s+/g, ' '));

export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'] });

// end prints what is wrong, a line each.
export const end = async () => {
  await browser.close();
  for (const p of problems) console.log(p);
};

// open returns a page that tells of errors. A page of status 403, 404, 409 or 422 is one error of the console, which is meant.
export const open = async (context, name) => {
  const p = await context.newPage();
  p.on('console', (m) => { if (m.type() === 'error' && !/status of (403|404|409|422)/.test(m.text())) problem(`${name}: console: ${m.text()}`); });
  p.on('pageerror', (e) => problem(`${name}: ${e.message}`));
  p.on('request', (r) => { if (!r.url().startsWith(base)) problem(`${name}: it asks ${r.url()}`); });
  return p;
};

// check looks at a page; of a long list at its first rows, which the others are like.
const check = async (p, name, screen) => {
  const found = await p.evaluate((runOnly) => axe.run({ exclude: ['tr:nth-child(n+16)', 'li:nth-child(n+16)', 'dl > :nth-child(n+32)'] }, { runOnly, resultTypes: ['violations'] }), rules[screen]);
  for (const v of found.violations) {
    if (v.impact === 'serious' || v.impact === 'critical') problem(`${name} ${screen}: ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message || '')).join(' | ')}`);
  }
  const wide = await p.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide > 0) problem(`${name} ${screen}: it is ${wide} pixels wider than the screen`);
  // The content of a cell does not cover the next cell, and no tag is cut.
  const covered = await p.evaluate(() => [...document.querySelectorAll('td:not(.version), .tags')].filter((cell) => cell.offsetParent && [...cell.querySelectorAll('*')].some((e) => e.offsetWidth > 1 && e.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1)).map((cell) => cell.textContent.trim().slice(0, 60)));
  if (covered.length) problem(`${name} ${screen}: ${covered.length} cells overflow: ${covered.slice(0, 3).join(' | ')}`);
};

// look looks at the page that is open on each screen, and takes a picture of it: whole, unless it is long.
export const look = async (p, name, long, before) => {
  await p.evaluate(axe);
  for (const [screen, { colorScheme, viewport }] of Object.entries(screens)) {
    await p.emulateMedia({ colorScheme });
    await p.setViewportSize(viewport);
    await check(p, name, screen);
    if (before) await before(screen);
    if (shots) await p.screenshot({ path: path.join(shots, `${name}-${screen}.png`), fullPage: !long });
  }
  await p.emulateMedia({ colorScheme: 'light' });
  await p.setViewportSize(screens.light.viewport);
};

// step runs a part of what somebody does, and names it where it fails.
export const step = async (context, name, run) => {
  const p = await open(context, name);
  p.setDefaultTimeout(15000);
  try { await run(p); } catch (e) { problem(`${name}: ${e.message}`); }
  await p.close();
};

export const is = (got, want, what) => { if (got !== want) throw new Error(`${what}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`); };
export const focused = (p) => p.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
