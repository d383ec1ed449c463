/**
 * Writes the pictures in docs/status-page.md: `npm run screenshots`. Runs as a test, which stops everything that it
 * started.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'puppeteer-core';
import { openPage, startBrowser } from '../test/fixtures/browser.ts';
import { provider, type Settings } from '../test/fixtures/managed-site.ts';
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

const SMALL = 'head -c 1000000 /dev/urandom >"$1"';

/** Writes an image of 20 MB, which takes some time to upload. */
const LARGE = 'head -c 20000000 /dev/urandom >"$1"';

function command(name: string, script: string): Settings {
  return { name, builder: 'command', command: ['sh', '-c', script, 'build', '{output.raw}'] };
}

/** A provider of raw images. */
function cloud(name: string, diskimages: readonly string[], settings: Settings = {}): Settings {
  const images = diskimages.map((diskimage) => ({ name: diskimage, diskimage }));
  return provider(name, { 'image-type': 'raw', images, ...settings });
}

test('pictures of the status page', async (t) => {
  const small = ['debian-12', 'debian-13', 'rocky-10', 'ubuntu-24.04'];
  const names = [...small, 'fedora-43', 'ubuntu-26.04', 'windows-2025'];
  const site = await startWebSite(
    t,
    {
      diskimages: [
        ...small.map((name) => command(name, SMALL)),
        command('fedora-43', SLOW),
        command('ubuntu-26.04', BROKEN),
        command('windows-2025', LARGE),
      ],
      providers: [
        cloud('ec2-us', small, { directory: '.' }),
        cloud('east', names, { 'bandwidth-limit': 1_000_000 }),
        cloud('west', names),
        cloud('archive', ['debian-12'], { directory: 'state', 'post-upload-hook': '/bin/false' }),
      ],
    },
    '--build-workers=2',
  );
  await site.service.logged(/installed|locale C\.UTF-8/);
  await Promise.all(small.map((name) => site.service.logged(new RegExp(`of ${name}\\S+ to west is ready`))));
  await mkdir(DIRECTORY, { recursive: true });
  const browser = await startBrowser(t);
  const { page } = await openPage(browser, `${site.url}/login`);
  await page.type('input[name="token"]', TOKEN);
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
  await page.waitForFunction(
    '/[0-9] %.* left/.test(document.body.innerText) && /archive failed/.test(document.body.innerText)',
  );
  await picture(page, 'status-light', 'light', 1000);
  await picture(page, 'status-dark', 'dark', 1000);
  await picture(page, 'status-phone', 'light', 390);
  await page.setViewport({ width: 1000, height: 900 });
  await Promise.all([
    page.waitForNavigation(),
    page.click('[data-part="running"] a[href^="/builds/fedora"]'),
  ]);
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
  await page.setViewport({ width, height: 1040 });
  await page.evaluate('scrollTo(0, 0)');
  await page.screenshot({ path: join(DIRECTORY, `${name}.png`), optimizeForSpeed: false });
}
