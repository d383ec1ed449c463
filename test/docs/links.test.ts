import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { allPages, ROOT, readPage } from './markdown.ts';

/** URL of the documents in the package nodepool-builder. */
const PUBLISHED = 'https://unpkg.com/nodepool-builder/';

const pages = new Map<string, string>();
for (const page of await allPages()) pages.set(page, await readPage(page));

/** Returns the anchors that GitHub derives from the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const prose = page.replaceAll(/^```.*?^```$/gms, '');
  const headings = [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  const texts = headings.map((heading) => heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1'));
  return new Set(
    texts.map((text) =>
      text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

test('links to the project’s files and to their headings are valid', () => {
  const broken: string[] = [];
  for (const [page, text] of pages) {
    for (const [, path = '', anchor] of text.matchAll(/\]\(([^)#\s]*)(?:#([^)\s]*))?\)/g)) {
      if (/^https?:/.test(path) && !path.startsWith(PUBLISHED)) continue;
      const isPublished = path.startsWith(PUBLISHED);
      const inProject = isPublished ? path.slice(PUBLISHED.length) : normalize(join(dirname(page), path));
      const target = path === '' ? page : inProject;
      const linked = pages.get(target);
      const isThere = existsSync(join(ROOT, target));
      if (!isThere || (anchor !== undefined && linked !== undefined && !anchorsOf(linked).has(anchor))) {
        broken.push(`${page}: ${path}#${anchor ?? ''}`);
      }
    }
  }
  assert.deepEqual(broken, []);
});

test('a package’s README contains no relative link to anything outside the package', () => {
  const readmes = [...pages].filter(([page]) => /^packages\/[^/]+\/README\.md$/.test(page));
  const relative = readmes.flatMap(([page, text]) =>
    [...text.matchAll(/\]\(([^)\s]*)\)/g)]
      .map(([, link = '']) => link)
      .filter((link) => !/^(?:https?:|#)/.test(link))
      .map((link) => `${page}: ${link}`),
  );
  assert.ok(readmes.length > 5);
  assert.deepEqual(relative, []);
});
