// Only in test:all: it needs Chromium.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'puppeteer-core';
import { findBarriers, newPage, openPage, startBrowser } from '../fixtures/browser.ts';
import { docsImage } from '../fixtures/managed-site.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { MAY_ACT, startWebSite, TOKEN, type WebSite } from '../fixtures/web-site.ts';

const PHONE = { width: 360, height: 740, isMobile: true, hasTouch: true };
const DESKTOP = { width: 1200, height: 900 };

/** Waits until the page contains a text. */
async function untilShown(page: Page, text: string): Promise<void> {
  await page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(text)})`);
}

async function followLink(page: Page, selector: string): Promise<void> {
  await Promise.all([page.waitForNavigation(), page.click(selector)]);
}

/** Follows a link that the next update of the page may replace. */
async function followLiveLink(page: Page, selector: string): Promise<void> {
  await Promise.all([page.waitForNavigation(), page.locator(selector).click()]);
}

/** Waits until both providers have an image of `docs`. */
async function untilUploaded(site: WebSite, imageId = 'docs'): Promise<void> {
  for (const name of ['east', 'west']) {
    await site.service.logged(new RegExp(`upload \\S+ of ${imageId}-\\S+ to ${name} is ready`));
  }
}

/** A disk image that cannot be built. */
const BROKEN = { name: 'broken', builder: 'command', command: ['sh', '-c', 'exit 3', '{output.raw}'] };

describe('the status page', () => {
  it('the status page shows images, builds, uploads, failures and builders without JavaScript', async (t) => {
    const site = await startWebSite(t, { diskimages: [docsImage(), BROKEN] });
    await untilUploaded(site);
    await site.service.logged(/broken.*fail/);
    const browser = await startBrowser(t);
    const page = await newPage(browser);
    await page.setJavaScriptEnabled(false);
    const text = await waitUntil('the page', async () => {
      await page.goto(site.url);
      const shown = await page.$eval('body', ({ innerText }) => innerText);
      return /east west\n/.test(shown) && shown.includes('Failures') && shown;
    });
    assert.match(text, /2 disk images 1 ready 1 failed 1 builder/);
    assert.match(text, /build in 23 h 5\d min/);
    assert.match(text, /GiB free in /);
    await page.click('[data-part="image docs"] summary');
    await followLink(page, 'a[href="/images/docs"]');
    const ofImage = await page.$eval('body', ({ innerText }) => innerText);
    assert.match(ofImage, /to west as docs/);
    assert.doesNotMatch(ofImage, /Rebuild|Delete|Cancel/);
    await followLink(page, 'a[href^="/builds/docs-"]');
    assert.match(await page.$eval('body', ({ innerText }) => innerText), /State\s+ready/);
    await followLink(page, 'a[href^="/uploads/"]');
    assert.match(await page.$eval('body', ({ innerText }) => innerText), /Provider\s+(east|west), as docs/);
  });

  it('the status page updates itself, filters, and violates no accessibility rule', async (t) => {
    const site = await startWebSite(t, { diskimages: [docsImage(), { ...BROKEN, pause: true }] });
    await untilUploaded(site);
    const browser = await startBrowser(t);
    const { page, errors } = await openPage(browser, site.url);
    await untilShown(page, 'live, ');
    for (const theme of ['light', 'dark']) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
      for (const viewport of [DESKTOP, PHONE]) {
        await page.setViewport(viewport);
        assert.deepEqual(await findBarriers(page), [], `${theme}, ${viewport.width} pixels`);
        const width = await page.evaluate('document.documentElement.scrollWidth');
        assert.equal(width, viewport.width, 'nothing is wider than the page');
      }
    }
    await page.evaluate('globalThis.isSamePage = true');
    await page.click('[data-part="image docs"] summary');
    await untilShown(page, 'to east as docs');
    assert.deepEqual(await findBarriers(page), []);
    await page.focus('[data-part="image docs"] summary');
    await site.api('/images/docs/rebuild', { method: 'POST', headers: MAY_ACT });
    await page.waitForFunction(
      'document.querySelectorAll(`[data-part="image docs"] .records:nth-of-type(2) > li`).length === 2',
    );
    assert.equal(await page.evaluate('globalThis.isSamePage'), true);
    assert.equal(await page.evaluate('document.activeElement.tagName'), 'SUMMARY', 'the focus stays');
    await page.keyboard.press('Enter');
    assert.equal(await page.$('[data-part="image docs"][open]'), null);
    await page.type('#filter', 'brok');
    await untilShown(page, '1 shown');
    assert.notEqual(await page.$('[data-part="image docs"][hidden]'), null);
    assert.deepEqual(errors, []);
  });

  it('the status page lets a logged-in user rebuild, roll back and delete', async (t) => {
    const site = await startWebSite(t, { diskimages: [docsImage({ keep: 2 })] });
    await untilUploaded(site);
    const browser = await startBrowser(t);
    const { page, errors } = await openPage(browser, `${site.url}/login`);
    const enter = async (token: string): Promise<void> => {
      await page.type('input[name="token"]', token);
      await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
    };
    await enter('wrong');
    await untilShown(page, 'Wrong token.');
    await enter(TOKEN);
    await untilShown(page, 'Log out');
    const act = async (link: string): Promise<void> => {
      await page.click('[data-part="image docs"] summary');
      await followLiveLink(page, link);
      assert.deepEqual(await findBarriers(page), []);
      await followLink(page, 'main button');
    };
    await act('a[href^="/actions/rebuild"]');
    await untilShown(page, 'Rebuild docs: build docs-0000000004-');
    await untilUploaded(site, 'docs-0000000004');
    await act('a[href^="/actions/rollback"]');
    await untilShown(page, ' is withdrawn.');
    await page.click('[data-part="image docs"] summary');
    await untilShown(page, 'rolled back');
    await page.click('[data-part="image docs"] summary');
    await act('a[href^="/actions/delete-build?subject=docs-0000000001"]');
    await untilShown(page, 'deleting image ');
    await page.goto(site.url);
    await followLink(page, 'header button');
    await untilShown(page, 'Log in');
    assert.deepEqual(
      errors.filter((error) => !error.includes('403')),
      [],
    );
  });
});
