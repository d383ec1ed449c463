import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { allPages, ROOT, readPage } from './markdown.ts';

test('what a page links to within the project is there', async () => {
  const broken: string[] = [];
  for (const page of await allPages()) {
    for (const [, target = ''] of (await readPage(page)).matchAll(/\]\(([^)#]+)[^)]*\)/g)) {
      if (/^https?:/.test(target)) continue;
      if (!existsSync(join(ROOT, dirname(page), target))) broken.push(`${page}: ${target}`);
    }
  }
  assert.deepEqual(broken, []);
});
