import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { missingAddresses } from '../../../scripts/rehearse-release/addresses.ts';

test('the rehearsal of a release names each package.json without an author or an address', async (t) => {
  const checkout = await mkdtemp(join(tmpdir(), 'addresses-'));
  t.after(() => rm(checkout, { recursive: true }));
  const complete = { author: 'a', homepage: 'https://example.org', bugs: 'b@example.org', repository: 'x/y' };
  for (const [name, manifest] of [
    ['complete', complete],
    ['new', { author: 'a' }],
  ] as const) {
    await mkdir(join(checkout, 'packages', name), { recursive: true });
    await writeFile(join(checkout, 'packages', name, 'package.json'), JSON.stringify(manifest));
  }
  assert.deepEqual(await missingAddresses(checkout), [
    'packages/new/package.json has no homepage, bugs, repository',
  ]);
});
