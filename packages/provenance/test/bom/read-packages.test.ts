// Not a unit test: it starts threads, and makes a FIFO.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { inThread } from '../../src/bom/in-thread.ts';
import { MAX_PACKAGE_LIST } from '../../src/bom/package-list.ts';
import { type FoundPackages, readBillOfMaterials, readPackages } from '../../src/bom/read-packages.ts';
import { provenanceFailure } from '../provenance-failure.ts';

function missingReason(found: FoundPackages): string {
  assert.ok('reason' in found, JSON.stringify(found));
  return found.reason;
}

for (const name of ['1-a.packages', '1-a.manifest']) {
  test(`the package list ${name} next to the image is found`, async (t) => {
    const directory = temporaryDirectory(t);
    await writeFile(join(directory, name), 'deb\tcurl\t8\tamd64\ndeb\t\t1\n');
    const found = await readPackages(directory, '1-a');
    assert.deepEqual(found, {
      source: name,
      packages: [
        {
          type: 'deb',
          name: 'curl',
          version: '8',
          architecture: 'amd64',
          purl: 'pkg:deb/debian/curl@8?arch=amd64',
        },
      ],
      skipped: 1,
    });
  });
}

test('a build without a usable package list gives the reason without naming the private directory', async (t) => {
  const directory = temporaryDirectory(t);
  const path = join(directory, '1-a.packages');
  assert.equal(missingReason(await readPackages(directory, '1-a')), 'its build left no package list');
  for (const [prepare, reason] of [
    [() => writeFile(path, 'os\tmini\t\n'), /^1-a\.packages lists no packages$/],
    [() => writeFile(path, '{'), /^1-a\.packages cannot be used: it is not JSON$/],
    [() => truncate(path, 9 * 2 ** 20), /^the package list "1-a\.packages" is larger than 8388608 bytes$/],
    [
      async () => {
        execFileSync('rm', [path]);
        execFileSync('mkfifo', [path]);
      },
      /^the package list "1-a\.packages" cannot be used: it is not a file/,
    ],
    [
      async () => {
        execFileSync('rm', [path]);
        await symlink('/etc/passwd', path);
      },
      /it is a symbolic link/,
    ],
  ] as const) {
    await prepare();
    assert.match(missingReason(await readPackages(directory, '1-a')), reason);
  }
});

test('a package list of the max size that is made to take much memory takes at most 400 MB', async (t) => {
  const directory = temporaryDirectory(t);
  const component = `{"x":[${Array.from({ length: 1000 }, () => '{}').join()}]},`;
  const components = component.repeat(Math.floor((MAX_PACKAGE_LIST - 100) / component.length));
  await writeFile(
    join(directory, '1-a.packages'),
    `{"bomFormat":"CycloneDX","components":[${components}{}]}`,
  );
  const before = process.memoryUsage.rss();
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 5);
  assert.match(missingReason(await readPackages(directory, '1-a')), /1-a\.packages lists no packages/);
  clearInterval(timer);
  assert.ok(peak - before < 400e6, `${(peak - before) / 1e6} MB`);
});

test('a package list of the max size, which takes long to read, does not block the event loop', async (t) => {
  const directory = temporaryDirectory(t);
  const line = '\tx\n';
  await writeFile(join(directory, '1-a.packages'), line.repeat(MAX_PACKAGE_LIST / line.length));
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  const begin = performance.now();
  const reason = missingReason(await readPackages(directory, '1-a'));
  const elapsed = performance.now() - begin;
  delay.disable();
  assert.equal(reason, '1-a.packages lists no packages');
  assert.ok(delay.max / 1e6 < elapsed / 4, `${delay.max / 1e6} ms of ${elapsed} ms`);
});

test('an abort ends the reading of a package list', async (t) => {
  const directory = temporaryDirectory(t);
  await writeFile(join(directory, '1-a.packages'), 'deb\tcurl\t8\n');
  const stop = new AbortController();
  const reading = readPackages(directory, '1-a', { signal: stop.signal });
  stop.abort(new Error('the build was cancelled'));
  await assert.rejects(reading, /the build was cancelled/);
});

test('a thread that fails while its abort ends it does not end the process', async () => {
  const stop = new AbortController();
  const created = once(process, 'worker') as Promise<[Worker]>;
  const reading = inThread('parse', { bytes: Buffer.from('deb') }, stop.signal);
  const [thread] = await created;
  stop.abort(new Error('the build was cancelled'));
  thread.emit('error', new Error('the list is invalid'));
  await assert.rejects(reading, /the build was cancelled/);
});

test('a bill of materials is rejected if it is missing, damaged, too large, or not the attested one', async (t) => {
  const path = join(temporaryDirectory(t), 'bom.cdx.json');
  await assert.rejects(
    readBillOfMaterials(path),
    provenanceFailure('bill-of-materials-invalid', 'does not exist'),
  );
  await writeFile(path, '{"bomFormat": "CycloneDX"}');
  assert.deepEqual(await readBillOfMaterials(path), []);
  await assert.rejects(
    readBillOfMaterials(path, '0'.repeat(64)),
    provenanceFailure('bill-of-materials-invalid', 'it was changed', '0'.repeat(64)),
  );
  await truncate(path, 10);
  await assert.rejects(readBillOfMaterials(path), provenanceFailure('bill-of-materials-invalid', 'not JSON'));
  await truncate(path, 200_000_000);
  await assert.rejects(readBillOfMaterials(path), { code: 'bill-of-materials-too-large' });
});
