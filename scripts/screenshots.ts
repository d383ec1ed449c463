/**
 * Writes the pictures in docs/status-page.md: `npm run screenshots`. Runs as a test, which stops everything that it
 * started.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'puppeteer-core';
import { openPage, startBrowser } from '../test/fixtures/browser.ts';
import { docsImage, provider, type Settings } from '../test/fixtures/managed-site.ts';
import { startWebSite, TOKEN } from '../test/fixtures/web-site.ts';

const DIRECTORY = join(import.meta.dirname, '../docs/images');

/** A build that takes minutes, with output like diskimage-builder's. */
const SLOW = `
for step in root.d extra-data.d pre-install.d install.d; do
  printf '\\033[1;34m2026-11-23 05:00:00.000 | Running hooks in %s\\033[0m\\n' "$step"
  for n in $(seq 12); do
    echo "2026-11-23 05:00:00.$n | dib-run-parts Running $step/$n-element"
    printf '2026-11-23 05:00:00.%s | Get:%s http://deb.debian.org/debian trixie/main amd64\\n' "$n" "$n"
  done
  printf '2026-11-23 05:00:00.900 | \\033[33mwarning: locale C.UTF-8 is not installed\\033[0m\\n'
done
sleep 600
`;

const BROKEN = "echo 'E: Unable to locate package openssh-servr' >&2; exit 100";

function command(name: string, script: string): Settings {
  return { name, builder: 'command', command: ['sh', '-c', script, 'build', '{output.raw}'] };
}

test('pictures of the status page', async (t) => {
  const names = ['debian-13', 'fedora-42', 'ubuntu-24.04', 'ubuntu-26.04'];
  const images = names.map((name) => ({ name, diskimage: name }));
  const site = await startWebSite(
    t,
    {
      diskimages: [
        docsImage({ name: 'debian-13' }),
        docsImage({ name: 'ubuntu-24.04' }),
        command('ubuntu-26.04', BROKEN),
        command('fedora-42', SLOW),
      ],
      providers: [provider('east', { images }), provider('west', { images })],
    },
    '--build-workers=2',
  );
  await site.service.logged(/installed|locale C\.UTF-8/);
  await Promise.all(
    ['debian-13', 'ubuntu-24.04'].map((name) =>
      site.service.logged(new RegExp(`upload \\S+ of ${name}\\S+ to west is ready`)),
    ),
  );
  await mkdir(DIRECTORY, { recursive: true });
  const browser = await startBrowser(t);
  const { page } = await openPage(browser, `${site.url}/login`);
  await page.type('input[name="token"]', TOKEN);
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
  await page.waitForFunction("document.body.innerText.includes('Failures')");
  for (const image of ['fedora-42', 'ubuntu-24.04', 'ubuntu-26.04'])
    await page.click(`[data-part="image ${image}"] summary`);
  await picture(page, 'status-light', 'light', 1000);
  await picture(page, 'status-dark', 'dark', 1000);
  await picture(page, 'status-phone', 'light', 390);
  await page.setViewport({ width: 1000, height: 900 });
  await Promise.all([page.waitForNavigation(), page.click('[data-part="running"] a[href^="/builds/"]')]);
  await page.waitForFunction("document.querySelector('#log').textContent.includes('install.d/12')");
  await page.type('#search', 'warning');
  await page.keyboard.down('Shift');
  await page.keyboard.press('Enter'); // Selects the last match.
  await page.keyboard.up('Shift');
  await page.waitForFunction("document.querySelector('#found').textContent.includes('found')");
  await picture(page, 'build-dark', 'dark', 1000);
});

async function picture(page: Page, name: string, theme: 'light' | 'dark', width: number): Promise<void> {
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
  await page.setViewport({ width, height: 900 });
  await page.evaluate('scrollTo(0, 0)');
  await page.screenshot({ path: join(DIRECTORY, `${name}.png`), optimizeForSpeed: false });
}
