// Acts on a fleet in a browser, by keyboard alone: signs in, pauses and resumes a node, has nodes run. It prints what is wrong, a line
// each; none where nothing is. NODE is a node that obeys, OPERATE and READ are tokens.
import { base, browser, end, is, look, screens, step as stepIn } from './common.mjs';

const node = process.env.NODE;
const context = await browser.newContext({ ...screens.light, reducedMotion: 'reduce' });
const step = (name, run) => stepIn(context, name, run);

// tabTo presses the key until something with a text, or an id, has the focus.
const tabTo = async (p, text) => {
  const seen = [];
  for (let i = 0; i < 80; i++) {
    await p.keyboard.press('Tab');
    const at = await p.evaluate(() => [document.activeElement.id, document.activeElement.textContent.trim()]);
    if (at.includes(text)) return;
    seen.push(at[0] || at[1]);
  }
  throw new Error(`Tab does not get to ${text}, but to ${seen.join(', ')}`);
};
const heading = (p) => p.textContent('h1');
const signIn = async (p, token) => {
  await p.goto(base + '/nodes/' + node);
  await p.waitForURL('**/login?*');
  await tabTo(p, 'token');
  await p.keyboard.type(token);
  await p.keyboard.press('Enter');
  await p.waitForURL('**/nodes/' + node);
};
const text = (p, what) => p.waitForFunction((what) => document.querySelector('main').textContent.replace(/\s+/g, ' ').includes(what), what);

await step('sign in', async (p) => {
  await signIn(p, process.env.OPERATE);
  await text(p, 'Run now');
  await look(p, 'act-node');
});

await step('pause', async (p) => {
  await p.goto(base + '/nodes/' + node);
  await tabTo(p, 'Pause');
  await p.keyboard.press('Enter');
  await p.waitForURL('**/actions/pause?*');
  is(await heading(p), 'Pause ' + node, 'the page that asks');
  await look(p, 'act-confirm');
  await tabTo(p, 'until');
  await p.keyboard.type('soon');
  await tabTo(p, 'reason');
  await p.keyboard.type('disk <b>is</b> replaced');
  await p.keyboard.press('Enter');
  await text(p, 'Nothing was done');
  is(await p.inputValue('#reason'), 'disk <b>is</b> replaced', 'what was filled in');
  await look(p, 'act-refused');
  await tabTo(p, 'until');
  await p.keyboard.press('Control+A');
  await p.keyboard.type('2h');
  await tabTo(p, 'Pause 1 node');
  await p.keyboard.press('Enter');
  await p.waitForURL(/\/actions\/\w{27}$/);
  await text(p, '1 of 1 node paused');
  await text(p, 'disk <b>is</b> replaced');
  await look(p, 'act-paused');
  const url = p.url();
  await p.reload();
  is(p.url(), url, 'the address after a reload');
});

await step('resume', async (p) => {
  await p.goto(base + '/nodes/' + node);
  await text(p, 'Paused');
  await look(p, 'act-node-paused');
  await tabTo(p, 'Resume');
  await p.keyboard.press('Enter');
  await p.waitForURL('**/actions/resume?*');
  await tabTo(p, 'Resume 1 node');
  await p.keyboard.press('Enter');
  await text(p, '1 of 1 node resumed');
});

await step('run now', async (p) => {
  await p.goto(base + '/nodes/' + node);
  await tabTo(p, 'Run now');
  await p.keyboard.press('Enter');
  await p.waitForURL('**/actions/run?*');
  await tabTo(p, 'Run 1 node');
  await p.keyboard.press('Enter');
  await text(p, '1 of 1 node ran');
  await p.click('.runs a');
  await p.waitForURL('**/runs/' + node + '/*');
});

await step('all nodes', async (p) => {
  await p.goto(base + '/nodes');
  await p.waitForSelector('[data-live][data-state=on]');
  await look(p, 'act-nodes', true);
  await tabTo(p, 'Run now');
  await p.keyboard.press('Enter');
  await p.waitForURL('**/actions/run?*');
  await look(p, 'act-confirm-all');
  await p.click('button.primary');
  is(new URL(p.url()).search.length > 0, true, 'it is not sent before the box is ticked');
  await p.check('[name=all]');
  await p.click('button.primary');
  await p.waitForURL(/\/actions\/\w{27}$/);
  await text(p, 'Not on all nodes');
  await look(p, 'act-result', true);
});

await step('a manifest', async (p) => {
  await p.goto(base + '/manifests/nginx?status=failed');
  await tabTo(p, 'Run now where failed');
  await p.keyboard.press('Enter');
  await text(p, 'matches manifest("nginx").status == "failed"');
  is(await p.inputValue('#manifests'), 'nginx', 'the manifest that is run');
  await look(p, 'act-confirm-manifest');
});

await step('preview', async (p) => {
  await p.goto(base + '/audit/group.sim-web.nginx');
  await p.click('.card > header a');
  await p.waitForURL('**/actions/preview?*');
  is(await p.inputValue('#on'), 'group("sim-web")', 'the target');
  await look(p, 'act-preview');
  await p.selectOption('#key', '');
  await p.fill('#revision', '');
  await tabTo(p, 'Or a manifest of your own');
  await p.keyboard.press('Enter');
  await tabTo(p, 'name');
  await p.keyboard.type('nginx');
  await tabTo(p, 'manifest');
  await p.keyboard.type('muster: {resources: [{file: [{/etc/nginx/nginx.conf: {content: "listen 9090;\\n", owner: root, group: root, mode: "0644"}}]}]}');
  await look(p, 'act-preview-own');
  await tabTo(p, 'Preview');
  await p.keyboard.press('Enter');
  await p.waitForURL(/\/actions\/\w{27}$/);
  await text(p, 'Would change');
  await look(p, 'act-plans', true);
});

await step('lists', async (p) => {
  for (const [name, url] of Object.entries({ actions: '/actions', audit: '/audit/nodes', requests: '/requests' })) {
    await p.goto(base + url);
    await text(p, 'anna');
    await look(p, 'act-' + name);
  }
});

await step('without scripts', async () => {
  const plain = await browser.newContext({ ...screens.light, javaScriptEnabled: false, storageState: await context.storageState() });
  const p = await plain.newPage();
  await p.goto(base + '/nodes/' + node);
  await p.click('text=Run now');
  await p.check('[name=noop]');
  await p.click('button.primary');
  await p.waitForURL(/\/actions\/\w{27}$/);
  await p.reload();
  is(/1 of 1 node ran/.test(await p.textContent('main')), true, 'the result');
  await plain.close();
});

await step('who only reads', async () => {
  const other = await browser.newContext({ ...screens.light });
  await stepIn(other, 'who only reads', async (p) => {
    await signIn(p, process.env.READ);
    is(await p.locator('.acts').count(), 0, 'buttons');
    await p.goto(base + '/actions/pause?node=' + node);
    await text(p, 'wall may only read: that needs the role operate.');
    await look(p, 'act-forbidden');
  });
  await other.close();
});

await step('sign out', async (p) => {
  await p.goto(base + '/');
  await tabTo(p, 'Sign out');
  await p.keyboard.press('Enter');
  await p.waitForURL('**/login');
});

await end();
