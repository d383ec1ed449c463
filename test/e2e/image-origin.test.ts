// Only in test:all: it needs Chromium.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import type { BuildOrigin } from '../../packages/nodepool-builder/src/attestation/origin/origin-record.ts';
import { findBarriers, openPage, startBrowser } from '../fixtures/browser.ts';
import { runInProcess } from '../fixtures/command-in-process.ts';
import { docsImage } from '../fixtures/managed-site.ts';
import { writeKeys } from '../fixtures/site-key.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { MAY_ACT, startWebSite, type WebSite } from '../fixtures/web-site.ts';

type BuildOrUpload = Readonly<Record<string, string>>;

/** Script that creates an empty file system, and leaves a package list next to it. */
const COMMAND = [
  'sh',
  '-ec',
  'mke2fs -q -t ext2 "$1" 512K; cp "$2" "$3"',
  'sh',
  '{output.raw}',
  'PACKAGES',
  '{directory}/{image-id}.packages',
];

/** Writes the package list that the command leaves. */
async function writePackages(path: string, versions: Readonly<Record<string, string>>): Promise<void> {
  const lines = Object.entries(versions).map(([name, version]) => `deb\t${name}\t${version}\tamd64\n`);
  await writeFile(path, `os\tdebian\t13\n${lines.join('')}`);
}

/** Waits until both providers have another image. Returns its id. */
async function untilUploaded(site: WebSite, old?: string): Promise<string> {
  return await waitUntil('two uploads', async () => {
    const uploads = (await site.api('/uploads')).body as BuildOrUpload[];
    const ready = uploads.filter(({ state, 'image-id': id }) => state === 'ready' && id !== old);
    return ready.length === 2 && ready[0]?.['image-id'];
  });
}

it('image-status, the API and the page show where an image comes from', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'image-origin-'));
  undoAfter(t, () => rm(directory, { recursive: true, force: true }));
  const { key, publicKey } = await writeKeys(directory);
  const list = join(directory, 'packages');
  await writePackages(list, { curl: '8.0', telnet: '1.0' });
  const command = COMMAND.map((arg) => (arg === 'PACKAGES' ? list : arg));
  const settings = {
    attestation: { key, 'public-key': publicKey },
    diskimages: [docsImage({ builder: 'command', command, options: undefined })],
  };
  const site = await startWebSite(t, settings);
  const first = await untilUploaded(site);
  await writePackages(list, { curl: '9.0', vim: '9.1' });
  await site.api('/images/docs/rebuild', { method: 'POST', headers: MAY_ACT });
  const second = await untilUploaded(site, first);

  const origin = (await site.api(`/builds/${second}/origin`)).body as BuildOrigin;
  assert.equal(origin.proof.state, 'proven', origin.proof.reason);
  assert.equal(origin.proof['key-file'], publicKey);
  assert.deepEqual(origin.uploads.map(({ provider, proof }) => `${provider} ${proof.state}`).toSorted(), [
    'east proven',
    'west proven',
  ]);
  assert.partialDeepStrictEqual(origin.packages, {
    count: 2,
    'compared-with': first,
    added: [{ name: 'vim', version: '9.1' }],
    removed: [{ name: 'telnet', version: '1.0' }],
    changed: [{ name: 'curl', before: '8.0', after: '9.0' }],
  });
  const upload = origin.uploads[0]?.['upload-id'] ?? assert.fail('the image has no upload');
  assert.deepEqual((await site.api(`/uploads/${upload}/origin`)).body, origin.uploads[0]);

  assert.deepEqual(await site.list('image-status', second), origin);
  const { stdout } = await runInProcess('image-status', second, '-c', site.config);
  assert.match(stdout, new RegExp(`^${second}: proven, .*; key [0-9a-f]{12} in ${publicKey}`));
  assert.match(stdout, new RegExp(`2 packages; since ${first}: 1 added, 1 removed, 1 changed`));
  assert.match(stdout, /curl +amd64 +8\.0 +9\.0/);
  assert.match(stdout, /east +proven/);
  const missing = await runInProcess('image-status', 'none', '-c', site.config);
  assert.match(missing.stderr, /image none does not exist; dib-image-list lists all images/);

  const browser = await startBrowser(t);
  for (const path of [`builds/${second}`, `uploads/${upload}`]) {
    const { page, errors } = await openPage(browser, `${site.url}/${path}`);
    assert.deepEqual(await findBarriers(page), [], path);
    assert.deepEqual(errors, []);
    await page.setJavaScriptEnabled(false);
    await page.goto(`${site.url}/${path}`);
    assert.match(await page.$eval('body', ({ innerText }) => innerText), /Origin\s+(?:Proof\s+)?proven/);
    await page.close();
  }

  const file = join(directory, 'images.json');
  await runInProcess('export-image-data', file, '-c', site.config);
  await site.service.end('SIGTERM');
  await site.configure({ ...settings, manager: { store: 'state/other.sqlite' } });
  await runInProcess('import-image-data', file, '-c', site.config);
  assert.deepEqual(await site.list('image-status', second), origin);
});
