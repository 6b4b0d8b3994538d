// Looks at a dashboard while NATS is away. It prints what is wrong, a line each; none where nothing is. HOOK stops NATS, and
// starts it again.
import { base, browser, end, is, look, screens, step as stepIn } from './common.mjs';

const context = await browser.newContext({ ...screens.light, reducedMotion: 'reduce' });
const step = (name, run) => stepIn(context, name, run);
const live = (p) => p.textContent('[data-live]');
const hook = async (path) => { await fetch(process.env.HOOK + path); };

await step('outage', async (p) => {
  await p.goto(base + '/nodes');
  await p.waitForSelector('[data-live][data-state=on]');
  is(await live(p), 'Live', 'while NATS is there');
  await hook('/stop');
  await p.waitForSelector('[data-live][data-state=stale]');
  is(await live(p), 'Not current', 'while NATS is away');
  is(await p.locator('#live .notice').count(), 1, 'notices');
  await p.goto(base + '/');
  await p.waitForSelector('[data-live][data-state=stale]');
  await look(p, 'outage');
  await hook('/start');
  await p.waitForSelector('[data-live][data-state=on]');
  is(await p.locator('#live .notice').count(), 0, 'notices once NATS is back');
});

await end();
