// Only in test:all: it needs Chromium.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { findBarriers, openPage, startBrowser } from '../fixtures/browser.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { startWebSite, type WebSite } from '../fixtures/web-site.ts';

/** Script that prints lines, waits for the file `go`, prints more, and ends. */
const SCRIPT = `
for n in $(seq 300); do echo "line $n of <b>300</b>"; done
printf '\\033[31mred & dangerous <script>alert(1)</script>\\033[0m\\n'
until [ -e "$1/go" ]; do sleep 0.1; done
for n in $(seq 30000); do echo "later line $n"; done
truncate -s 1M "$2"
`;

async function startBuild(site: WebSite): Promise<string> {
  return await waitUntil('the build', async () => {
    const builds = (await site.api('/builds')).body as {
      'image-id': string;
      state: string;
      host: string | null;
    }[];
    return builds[0]?.host != null && builds[0]['image-id'];
  });
}

/** Script that prints lines of several widths, most of which wrap, waits for `go`, prints more, and waits for `end`. */
const LONG_LINES = `
lines() { seq "$2" | awk -v of="$1" '{ printf "%d ", $1; for (n = $1 % 300; n > 0; n--) printf "x"; print " of " of }'; }
lines first 300
until [ -e "$1/go" ]; do sleep 0.1; done
lines later 2000
until [ -e "$1/end" ]; do sleep 0.1; done
truncate -s 1M "$2"
`;

describe('the page of a build', () => {
  it('a build’s page shows the end of the log while "Follow the end" is ticked', async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'log-page-'));
    undoAfter(t, () => rm(directory, { recursive: true }));
    const command = ['bash', '-c', LONG_LINES, 'build', directory, '{output.raw}'];
    const diskimages = [{ name: 'docs', builder: 'command', command }];
    const site = await startWebSite(t, { diskimages, providers: [] });
    const imageId = await startBuild(site);
    const browser = await startBrowser(t);
    const { page, errors } = await openPage(browser, `${site.url}/builds/${imageId}`);
    // The log box is below the fold when its first lines arrive, so they have no height until it is visible.
    const endIsInSight = (text: string) =>
      page.waitForFunction(`(() => {
        const log = document.querySelector('#log');
        if (!log.lastElementChild?.textContent.endsWith('${text}')) return false;
        const end = document.createRange();
        end.selectNodeContents(log.lastElementChild);
        const { height, bottom } = end.getBoundingClientRect();
        const box = log.getBoundingClientRect();
        const isInSight = height > 100 && bottom > box.top && bottom < box.bottom;
        return isInSight && document.querySelector('#follow').checked;
      })()`);
    await page.waitForFunction("document.querySelector('#log').textContent.endsWith('of first')");
    await page.$eval('#log', (log) => log.scrollIntoView());
    await endIsInSight('of first');
    await writeFile(join(directory, 'go'), '');
    await endIsInSight('of later');
    await page.hover('#log');
    await page.mouse.wheel({ deltaY: -3000 });
    await page.waitForFunction("!document.querySelector('#follow').checked");
    await page.click('#follow');
    await endIsInSight('of later');
    await writeFile(join(directory, 'end'), '');
    await page.waitForFunction("document.querySelector('#live').textContent === 'the log is complete'");
    assert.deepEqual(errors, []);
  });

  it('a build’s page follows its log, keeps colours harmless, and searches', async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'log-page-'));
    undoAfter(t, () => rm(directory, { recursive: true }));
    const command = ['sh', '-c', SCRIPT, 'build', directory, '{output.raw}'];
    const diskimages = [{ name: 'docs', builder: 'command', command }];
    const site = await startWebSite(t, { diskimages, providers: [] });
    const imageId = await startBuild(site);
    const browser = await startBrowser(t);
    const { page, errors } = await openPage(browser, `${site.url}/builds/${imageId}`);
    const shows = (text: string) =>
      page.waitForFunction(`document.querySelector('#log').textContent.includes('${text}')`);
    await shows('red & dangerous <script>');
    assert.equal(
      await page.$eval('#log .c-red', ({ textContent }) => textContent),
      'red & dangerous <script>alert(1)</script>',
    );
    assert.deepEqual(await findBarriers(page), []);
    await page.type('#search', 'LINE 150 of <b>');
    await page.keyboard.press('Enter');
    await page.waitForFunction("document.querySelector('#found').textContent === '1 of 1 found'");
    assert.equal(
      await page.$eval('#follow', (box) => (box as unknown as { readonly checked: boolean }).checked),
      false,
    );
    const top = await page.evaluate("document.querySelector('#log').scrollTop");
    await writeFile(join(directory, 'go'), '');
    await shows('later line 30000');
    assert.equal(
      await page.evaluate("document.querySelector('#log').scrollTop"),
      top,
      'it stays where the reader is',
    );
    await page.click('#follow');
    await page.waitForFunction("document.querySelector('#live').textContent === 'the log is complete'");
    await page.waitForFunction("document.querySelector('#facts').innerText.includes('ready')");
    assert.deepEqual(errors, []);

    const text = await (await fetch(`${site.url}/api/v1/builds/${imageId}/log`)).text();
    assert.match(text, /^\\x1b\[31mred & dangerous/m);
    assert.match(text, /later line 30000\n/);
    const events = await (
      await fetch(`${site.url}/api/v1/builds/${imageId}/log/events?offset=${text.length - 17}`)
    ).text();
    assert.match(
      events,
      /event: lines\ndata: \{"text":"later line 30000","offset":\d+\}\n\nid: \d+\nevent: end/,
    );
    const beyond = await (
      await fetch(`${site.url}/api/v1/builds/${imageId}/log/events?offset=${text.length + 1000}`)
    ).text();
    assert.match(
      beyond,
      /^retry: 2000\n\nid: \d+\nevent: lines\ndata: \{"text":"# the log reached its limit: lines are repeated or missing/,
    );
    assert.match(beyond, /later line 30000",[^\n]*\n\nid: \d+\nevent: end/, 'it goes on to the end');
    const whole = await (await fetch(`${site.url}/api/v1/builds/${imageId}/log/events`)).text();
    const parts = [...whole.matchAll(/^data: (\{"text".*)$/gm)].map(
      ([, json = '']) => JSON.parse(json) as { text: string },
    );
    assert.ok(parts.length > 1);
    assert.equal(`${parts.map((part) => part.text).join('\n')}\n`, text);
  });
});
