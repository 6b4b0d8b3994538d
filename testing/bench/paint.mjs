// Opens pages in a browser that has seen none of them, TIMES times each, and prints a line of JSON for each time. PAGES is an object of
// paths by name, TOKEN signs in.
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(path.join(process.env.MODULES, 'node_modules', 'x.js'));
const { chromium } = require('playwright-core');
const base = process.env.BASE;
const screen = { viewport: { width: 1280, height: 900 } };
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'] });

// Who is signed in keeps a cookie, and nothing else.
const first = await browser.newContext(screen);
const login = await first.newPage();
await login.goto(base + 'login');
await login.fill('#token', process.env.TOKEN);
await login.press('#token', 'Enter');
await login.waitForURL((url) => !url.pathname.startsWith('/login'));
const storageState = await first.storageState();
await first.close();

// measure returns the times in ms since the navigation began, and what came over the wire, headers included.
const measure = () => new Promise((done) => {
  const tell = (paint) => {
    const [page] = performance.getEntriesByType('navigation');
    const all = [page, ...performance.getEntriesByType('resource')];
    done({
      paint: paint.startTime, server: page.responseStart - page.requestStart, load: page.loadEventEnd,
      page: page.transferSize, bytes: all.reduce((sum, e) => sum + e.transferSize, 0), cached: all.filter((e) => e.transferSize === 0 && e.encodedBodySize > 0).length,
    });
  };
  new PerformanceObserver((list, observer) => {
    const paint = list.getEntriesByName('first-contentful-paint')[0];
    if (!paint) return;
    observer.disconnect();
    tell(paint);
  }).observe({ type: 'paint', buffered: true });
});

for (let i = 0; i < Number(process.env.TIMES); i++) {
  for (const [name, url] of Object.entries(JSON.parse(process.env.PAGES))) {
    const context = await browser.newContext({ ...screen, storageState });
    const page = await context.newPage();
    const answer = await page.goto(base + url, { waitUntil: 'load' });
    console.log(JSON.stringify({ name, status: answer.status(), ...await page.evaluate(measure) }));
    await context.close();
  }
}
await browser.close();
