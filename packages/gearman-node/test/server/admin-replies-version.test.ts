import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { VERSION } from '../../src/server/admin-replies.ts';

test('VERSION equals the version in package.json', async () => {
  const manifest: unknown = JSON.parse(
    await readFile(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  assert.equal((manifest as { version: string }).version, VERSION);
});
