import assert from 'node:assert/strict';
import { basename } from 'node:path';
import { test } from 'node:test';
import { allPages, readPage } from './markdown.ts';

test('docs/README.md lists each document once', async () => {
  const index = await readPage('docs/README.md');
  const rows = [...index.matchAll(/^\| \[[^\]]+\]\(([\w-]+\.md)\) \| \S.*\. \|$/gm)].map(
    ([, name = '']) => name,
  );
  const documents = (await allPages())
    .filter((path) => /^docs\/[\w-]+\.md$/.test(path))
    .map((path) => basename(path));
  assert.deepEqual(rows.toSorted(), documents.filter((name) => name !== 'README.md').toSorted());
});
