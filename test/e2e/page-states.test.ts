// Only in test:all: it needs Chromium.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'puppeteer-core';
import { findBarriers, newPage, openPage, startBrowser } from '../fixtures/browser.ts';
import { docsImage } from '../fixtures/managed-site.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { MAY_ACT, startWebSite, TOKEN, type WebSite } from '../fixtures/web-site.ts';

const HEIGHT = 900;

async function logIn(page: Page, { url }: WebSite): Promise<void> {
  await page.goto(`${url}/login`);
  await page.type('input[name="token"]', TOKEN);
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
}

async function textOf(page: Page, url: string): Promise<string> {
  await page.goto(url);
  return await page.$eval('body', ({ innerText }) => innerText);
}

/** Waits until a build of a disk image has a state. Returns the build's id. */
async function untilBuild(site: WebSite, diskimage: string, state: string): Promise<string> {
  return await waitUntil(`a build of ${diskimage} in the state ${state}`, async () => {
    const builds = (await site.api('/builds')).body as Readonly<Record<string, string>>[];
    return builds.find((build) => build.diskimage === diskimage && build.state === state)?.['image-id'];
  });
}

describe('the status page', () => {
  it('the status page shows who cancelled a build, why a ready one was requested, and what is possible', async (t) => {
    const slow = { name: 'slow', builder: 'command', command: ['sh', '-c', 'sleep 600', '{output.raw}'] };
    const site = await startWebSite(
      t,
      { diskimages: [docsImage({ keep: 2 }), slow] },
      '--build-workers',
      '2',
    );
    const docs = await untilBuild(site, 'docs', 'ready');
    const cancelled = await untilBuild(site, 'slow', 'building');
    const browser = await startBrowser(t);
    const page = await newPage(browser);
    await logIn(page, site);
    const header = await page.$eval('header', ({ innerText }) => innerText);
    assert.match(header, /token holder\s+Log out/);

    const offered = await textOf(page, `${site.url}/images/docs`);
    assert.doesNotMatch(offered, /Roll back/, 'there is no older image');
    assert.match(
      await textOf(page, `${site.url}/actions/rollback?subject=docs`),
      /no older image to roll back to/,
    );

    const ofReady = await textOf(page, `${site.url}/builds/${docs}`);
    assert.match(ofReady, /Requested\s+\d+ (s|min).* ago: its first ready build/);
    assert.doesNotMatch(ofReady, /unproven|Failure/);

    await site.api(`/builds/${cancelled}/cancel`, { method: 'POST', headers: MAY_ACT });
    await untilBuild(site, 'slow', 'cancelled');
    const ofCancelled = await textOf(page, `${site.url}/builds/${cancelled}`);
    assert.match(ofCancelled, /Cancelled by\s+token holder on the status page/);
    assert.doesNotMatch(ofCancelled, /Failure/);

    await site.api('/images/docs/rebuild', { method: 'POST', headers: MAY_ACT });
    const newer = await waitUntil('the newer build', async () => {
      const { body } = await site.api('/images/docs');
      const { newest, 'rollback-to': older } = body as Readonly<Record<string, string | null>>;
      return older === docs && newest;
    });
    await page.goto(`${site.url}/images/docs`);
    await Promise.all([page.waitForNavigation(), page.click('a[href^="/actions/rollback"]')]);
    const question = await page.$eval('main', ({ innerText }) => innerText);
    assert.match(
      question,
      RegExp(`${docs} is in use again. ${newer} is withdrawn. It is deleted at the builders and`),
    );
  });

  it('the status page keeps the images visible above many failures, and no state runs into the next column', async (t) => {
    const broken = Array.from({ length: 20 }, (_, index) => ({
      name: `broken-${index}`,
      builder: 'command',
      command: ['sh', '-c', 'seq 100; exit 3', '{output.raw}'],
    }));
    const site = await startWebSite(t, { diskimages: broken, providers: [] });
    await waitUntil('the failures', async () => {
      const builds = (await site.api('/builds')).body as Readonly<Record<string, string>>[];
      return builds.filter(({ state }) => state === 'failed').length === broken.length;
    });
    await site.configure({ diskimages: broken.map((image) => ({ ...image, pause: true })), providers: [] });
    site.service.child.kill('SIGHUP');
    const browser = await startBrowser(t);
    const { page, errors } = await openPage(browser, site.url);
    await page.setViewport({ width: 1000, height: HEIGHT });
    await page.waitForFunction("document.body.innerText.includes('failed, paused')");
    await page.waitForFunction("document.body.innerText.includes('17 more failures')");
    const top = await page.$eval('#images', (heading) => heading.getBoundingClientRect().top);
    assert.ok(top < HEIGHT, `the images begin at ${top} pixels`);
    const overlaps = await page.evaluate(`[...document.querySelectorAll('.image > summary')].filter((row) => {
      const range = document.createRange();
      range.selectNodeContents(row.querySelector('.badge'));
      return range.getBoundingClientRect().right > row.querySelector('span:not(.badge)').getBoundingClientRect().left;
    }).length`);
    assert.equal(overlaps, 0, 'states that run into the age');
    assert.deepEqual(await findBarriers(page), []);

    await page.waitForFunction("document.querySelector('#live').textContent.startsWith('live')");
    await site.service.end('SIGKILL');
    await page.waitForFunction("document.querySelector('#live').textContent.startsWith('Not connected.')");
    const filter = await page.evaluate("getComputedStyle(document.querySelector('main')).filter");
    assert.equal(filter, 'grayscale(1)', 'nothing is shown as if it were current');
    assert.deepEqual(await findBarriers(page), []);
    assert.deepEqual(
      errors.filter((error) => !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE/.test(error)),
      [],
    );
  });
});
