// Opens every page of the dashboard in a browser: by day, by night and on a narrow screen. It prints what is
// wrong, a line each; none where nothing is. HOOK has one more node reject what it is assigned. Screenshots are written where SHOTS names a folder,
// those of the documentation where DOCS does.
import path from 'node:path';
import { base, browser, end, focused, is, look, open, problem, screens, step as stepIn } from './common.mjs';

const failed = process.env.RUN;

const pages = {
  overview: '/',
  nodes: '/nodes',
  'nodes-error': '/nodes?on=' + encodeURIComponent('state == "faild"'),
  'nodes-failed': '/nodes?state=failed',
  'nodes-none': '/nodes?q=nothing-has-this-name',
  node: '/nodes/' + failed.split('/')[0],
  facts: '/nodes/' + failed.split('/')[0] + '/facts',
  manifests: '/manifests',
  manifest: '/manifests/nginx',
  'manifest-errors': '/manifests/nginx?tab=errors',
  'manifest-runs': '/manifests/nginx?tab=runs',
  'manifest-assignments': '/manifests/nginx?tab=assignments',
  run: '/runs/' + failed,
  events: '/events',
  requests: '/requests',
  request: '/requests/req-8d20',
  registrations: '/registrations',
  audit: '/audit',
  history: '/audit/group.sim-web.nginx',
  'missing-node': '/nodes/nope',
  missing: '/nope',
};
// documented are the pages of which the documentation shows what is seen first.
const documented = ['overview', 'nodes-failed', 'manifest', 'run'];

// A page is loaded once, and looked at on each screen.
const left = Object.entries(pages);
await Promise.all(Array.from({ length: 2 }, async () => {
  const context = await browser.newContext({ ...screens.light, reducedMotion: 'reduce' });
  const p = await open(context, 'pages');
  for (let next = left.shift(); next; next = left.shift()) {
    const [name, url] = next;
    await p.emulateMedia({ colorScheme: 'light' });
    await p.setViewportSize(screens.light.viewport);
    await p.goto(base + url, { waitUntil: 'load' });
    const bytes = await p.evaluate(() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].filter((e) => e.initiatorType !== 'other').reduce((sum, e) => sum + e.encodedBodySize, 0));
    if (bytes > 100_000) problem(`${name}: ${bytes} bytes over the wire`);
    // "/" goes to the field that names the key.
    await p.keyboard.press('/');
    const named = await p.evaluate(() => [...document.querySelectorAll('kbd')].filter((key) => key.offsetParent).map((key) => key.closest('.find, .field').querySelector('input').id).join());
    if (await focused(p) !== named) problem(`${name}: "/" goes to ${await focused(p)}, and the key stands at ${named}`);
    await p.evaluate(() => document.activeElement.blur());
    await look(p, name, ['nodes', 'events', 'manifest', 'request'].includes(name), async (screen) => {
      if (process.env.DOCS && screen === 'light' && documented.includes(name)) await p.screenshot({ path: path.join(process.env.DOCS, `dashboard-${name}.png`), clip: { x: 0, y: 0, width: 1280, height: 720 } });
    });
  }
  await context.close();
}));

const context = await browser.newContext({ ...screens.light, reducedMotion: 'reduce' });
const step = (name, run) => stepIn(context, name, run);

await step('keyboard only', async (p) => {
  await p.goto(base + '/nodes');
  await p.keyboard.press('Tab');
  is(await focused(p), 'Skip to the content', 'the first thing that has the focus');
  await p.keyboard.press('Enter');
  is(await focused(p), 'main', 'after the skip link');
  await p.keyboard.press('/');
  is(await focused(p), 'on', 'after /');
  await p.keyboard.type('group("sim-db") && state == "ok"');
  await p.waitForFunction(() => /^\d+ of 500 nodes$/.test(document.querySelector('#matching')?.textContent.trim()));
  is(await focused(p), 'on', 'while the list is updated');
  if (!decodeURIComponent(p.url()).includes('group("sim-db")')) throw new Error('the filter is not in the URL: ' + p.url());
  await p.keyboard.press('Escape');
  await p.keyboard.press('j');
  const first = await focused(p);
  await p.keyboard.press('j');
  await p.keyboard.press('k');
  is(await focused(p), first, 'after j and k');
  await p.keyboard.press('Enter');
  await p.waitForURL('**/nodes/' + first);
});

await step('an expression that is wrong', async (p) => {
  await p.goto(base + '/nodes');
  await p.fill('#on', 'state == "faild"');
  await p.waitForSelector('#on-error .notice');
  is(await p.getAttribute('#on', 'aria-invalid'), 'true', 'the mark of the field');
  await p.fill('#on', 'state == "failed"');
  await p.waitForSelector('#on-error .notice', { state: 'detached' });
});

await step('live', async (p) => {
  await p.goto(base + '/');
  await p.waitForSelector('[data-live][data-state=on]');
  await p.click('details.data summary');
  const before = await p.textContent('.headline strong');
  await fetch(process.env.HOOK);
  await p.waitForFunction((old) => document.querySelector('.headline strong').textContent !== old, before);
  is(await p.evaluate(() => document.querySelector('details.data').open), true, 'what was opened');
});

await step('a tab that nobody sees', async (p) => {
  await p.goto(base + '/nodes');
  await p.waitForSelector('[data-live][data-state=on]');
  const before = await p.textContent('.chip:has-text("Rejected") b');
  const show = (hidden) => p.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  await show(true);
  await fetch(process.env.HOOK);
  await show(false);
  await p.waitForFunction((old) => [...document.querySelectorAll('.chip')].find((c) => c.textContent.includes('Rejected')).querySelector('b').textContent !== old, before);
  await p.waitForSelector('[data-live][data-state=on]');
});

await step('the feed', async (p) => {
  await p.goto(base + '/events');
  await p.waitForSelector('[data-live][data-state=on]');
  await fetch(process.env.HOOK);
  await p.waitForSelector('#live >> text=new-rejection');
  await p.click('text=Pause');
  await p.waitForSelector('text=Resume the feed');
  is(await p.locator('[data-live]').count(), 0, 'signs of being live while it is paused');
  await p.click('text=Resume the feed');
  await p.waitForSelector('[data-live][data-state=on]');
  await p.selectOption('#kind', 'health');
  await p.waitForFunction(() => !document.querySelector('#live').textContent.includes('Run: Stable'));
});

await step('the menu of a narrow screen', async (p) => {
  await p.setViewportSize(screens.narrow.viewport);
  await p.goto(base + '/audit', { waitUntil: 'load' });
  const box = await p.locator('.menu a[aria-current]').boundingBox();
  is(box.x >= 0 && box.x + box.width <= screens.narrow.viewport.width, true, 'whether the page is seen in it');
  const cut = await p.evaluate(() => [...document.querySelectorAll('.menu a')].filter((a) => a.getBoundingClientRect().left < 0 || a.getBoundingClientRect().right > document.documentElement.clientWidth).map((a) => a.textContent.trim()));
  is(cut.join(', '), '', 'what of the menu is not seen');
});

await step('the audit of a narrow screen', async (p) => {
  await p.setViewportSize(screens.narrow.viewport);
  await p.goto(base + '/audit', { waitUntil: 'load' });
  const words = await p.evaluate(() => [...document.querySelectorAll('td:first-child .badge')].map((b) => [b.textContent.trim(), parseFloat(getComputedStyle(b).fontSize)]));
  is(words.length > 0 && words.every(([word, size]) => word !== '' && size >= 12), true, 'whether each change has its word');
  const keys = await p.evaluate(() => [...document.querySelectorAll('td.id .name')].map((name) => {
    const all = document.createTreeWalker(name, NodeFilter.SHOW_TEXT), broken = [];
    for (let text; (text = all.nextNode());) {
      for (const word of text.data.matchAll(/[^.\s-]+/g)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((line) => line.top)).size > 1) broken.push(word[0]);
      }
    }
    return broken.length > 0 ? `${broken} of ${name.textContent.trim()}` : '';
  }));
  is(keys.length > 0 && keys.join(''), '', 'what is broken within a word');
});

await step('who asked, beside a long command', async (p) => {
  await p.setViewportSize({ width: 1280, height: 900 });
  await p.goto(base + '/requests', { waitUntil: 'load' });
  const lines = await p.evaluate(() => {
    document.querySelector('td.id .name').textContent = "exec#sh -c 'journalctl --since today --unit nginx --priority warning --no-pager | grep --ignore-case --count refused || echo none of them was refused'";
    const by = document.querySelector('td.by'), range = document.createRange();
    by.textContent = 'anna@desk17';
    range.selectNodeContents(by);
    return new Set([...range.getClientRects()].map((line) => line.top)).size;
  });
  is(lines, 1, 'on how many lines the name is');
  if (process.env.SHOTS) await p.screenshot({ path: path.join(process.env.SHOTS, 'requests-long.png') });
});

await step('rows of one line', async (p) => {
  await p.setViewportSize({ width: 1280, height: 900 });
  for (const [url, rows, most] of [
    ['/nodes', '#live tbody tr', 36],
    ['/manifests', '#live tbody tr', 36],
    ['/manifests/nginx?tab=runs', '#live tbody tr', 36],
    ['/manifests/nginx', '#live tbody tr', 36],
    ['/nodes/' + failed.split('/')[0], 'section[aria-labelledby=assigned] tbody tr', 36],
    ['/events', '#live .rows > li:not(:has(.parts))', 30],
  ]) {
    await p.goto(base + url, { waitUntil: 'load' });
    const heights = await p.evaluate((rows) => [...document.querySelectorAll(rows)].map((r) => r.getBoundingClientRect().height), rows);
    is(heights.length > 0, true, 'whether there are rows on ' + url);
    is(heights.filter((h) => h > most).join(' '), '', `rows of ${url} higher than ${most} pixels`);
  }
});

await step('suggestions of the search field', async (p) => {
  await p.goto(base + '/');
  await p.keyboard.press('/');
  is(await focused(p), 'find', 'after /');
  const options = () => p.evaluate(() => [...document.querySelectorAll('#found option')].map((o) => o.value));
  const node = failed.split('/')[0];
  await p.keyboard.type(node.slice(0, -1));
  await p.waitForFunction((text) => {
    const all = [...document.querySelectorAll('#found option')];
    return all.length > 0 && all.every((o) => o.value.includes(text));
  }, node.slice(0, -1));
  is((await options()).length <= 8, true, 'whether there are at most eight suggestions');
  await p.keyboard.type(node.slice(-1));
  await p.waitForFunction((node) => [...document.querySelectorAll('#found option')].some((o) => o.value === node), node);
  // A browser inserts the suggestion that is chosen.
  await p.evaluate((node) => {
    const find = document.querySelector('#find');
    find.value = node;
    find.dispatchEvent(new InputEvent('input', { bubbles: true, inputType: 'insertReplacementText' }));
  }, node);
  await p.waitForURL('**/nodes/' + node);
  await p.goto(base + '/');
  await p.fill('#find', node);
  await p.press('#find', 'Enter');
  await p.waitForURL('**/nodes?q=' + node);
  await p.fill('#find', 'nothing-has-this-name');
  await p.waitForFunction(() => document.querySelectorAll('#found option').length === 0);
});

await step('nodes without a manifest', async (p) => {
  await p.goto(base + '/nodes?on=' + encodeURIComponent('state != "no-manifest"'));
  is((await p.getAttribute('#on', 'aria-invalid')) ?? 'false', 'false', 'the mark of the field'); // an update of the page writes false
  await p.goto(base + '/nodes?state=no-manifest');
  is((await p.textContent('.chip[aria-current]')).includes('No manifest'), true, 'whether the filter is shown as chosen');
});

await step('the theme', async (p) => {
  await p.goto(base + '/');
  for (const theme of ['light', 'dark']) {
    await p.click('[data-theme-toggle]');
    is(await p.evaluate(() => document.documentElement.dataset.theme), theme, 'the theme');
  }
  await p.reload();
  is(await p.evaluate(() => document.documentElement.dataset.theme), 'dark', 'the theme after a reload');
});

await end();
