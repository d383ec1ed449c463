import assert from 'node:assert/strict';
import { glob } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { test } from 'node:test';
import { allPages, codeBlocks, ROOT, readPage } from './markdown.ts';

const index = await readPage('docs/README.md');

test('docs/README.md lists each document once', async () => {
  const rows = [...index.matchAll(/^\| \[[^\]]+\]\(([\w-]+\.md)\) \| \S.*\. \|$/gm)];
  const documents = (await allPages()).filter((path) => /^docs\/[\w-]+\.md$/.test(path));
  assert.deepEqual(
    rows.map(([, name = '']) => name).toSorted(),
    documents.map((path) => basename(path)).filter((name) => name !== 'README.md'),
  );
});

test('docs/README.md draws the packages and their dependencies as they are', async () => {
  const scope = '@nodepool-builder/';
  const packages: string[] = [];
  const dependencies: string[] = [];
  for await (const path of glob('packages/*/package.json', { cwd: ROOT })) {
    const name = basename(dirname(path));
    const manifest = JSON.parse(await readPage(path)) as { dependencies?: Readonly<Record<string, string>> };
    const own = Object.keys(manifest.dependencies ?? {}).filter((dependency) => dependency.startsWith(scope));
    packages.push(name);
    dependencies.push(...own.map((dependency) => `${name} --> ${dependency.slice(scope.length)}`));
  }
  const picture = codeBlocks(index, 'mermaid').find((block) => block.includes('gearman-node')) ?? '';
  const nodes = [...picture.matchAll(/^ {2}([\w-]+)\[/gm)].map(([, name = '']) => name);
  const arrows = [...picture.matchAll(/^ {2}([\w-]+ --> [\w-]+)$/gm)].map(([, arrow = '']) => arrow);
  assert.deepEqual(nodes.toSorted(), packages.toSorted());
  assert.deepEqual(arrows.toSorted(), dependencies.toSorted());
});

test('docs/README.md links to each package’s and each example’s page', async () => {
  const pages = (await allPages()).filter((path) => /^(?:packages|examples)\/[\w-]+\/README\.md$/.test(path));
  const links = new Set(
    [...index.matchAll(/\]\(\.\.\/([\w/-]+)\)/g)].map(([, path = '']) => `${path}/README.md`),
  );
  assert.deepEqual(
    pages.filter((path) => !links.has(path)),
    [],
  );
});
