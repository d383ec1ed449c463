import assert from 'node:assert/strict';
import { glob, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { load } from 'js-yaml';
import { loadConfiguration } from 'nodepool-builder';
import { ZUUL_SETTINGS } from '../../packages/zuul-images/src/zuul-settings.ts';
import { ZUUL_JOBS } from '../fixtures/ansible-playbook.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { codeBlocks, readPage } from './markdown.ts';

const page = await readPage('docs/zuul.md');

test('docs/zuul.md shows each of the example’s files unchanged', async () => {
  const shown = page.matchAll(/^\[`(.*)`\]\(\.\.\/examples\/zuul-jobs\/\1\):\n\n```yaml\n(.*?)^```$/gms);
  const files = new Map([...shown].map(([, path = '', content]) => [path, content]));
  const there = new Set<string>();
  for await (const path of glob('{nodepool,playbooks,zuul.d}/**/*.yaml', { cwd: ZUUL_JOBS })) there.add(path);
  assert.deepEqual(new Set(files.keys()), there);
  for (const [path, content] of files) assert.equal(content, await readFile(join(ZUUL_JOBS, path), 'utf8'));
});

/** Returns the warnings about the example's `nodepool.yaml` with these keys in its zuul-images. */
async function warningsWith(t: TestContext, name: string, keys: object = {}): Promise<readonly unknown[]> {
  const directory = await mkdtemp(join(tmpdir(), 'docs-zuul-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const text = await readFile(join(ZUUL_JOBS, 'nodepool', name), 'utf8');
  const { 'zuul-images': images = [], ...others } = load(text) as { 'zuul-images'?: object[] };
  const file = join(directory, 'nodepool.yaml');
  const zuulImages = images.map((image) => ({ ...image, ...keys }));
  await writeFile(file, JSON.stringify({ ...others, 'zuul-images': zuulImages }));
  const auth = {
    auth_url: 'https://keystone.example.com/v3',
    username: 'u',
    password: 'p',
    project_name: 'x',
  };
  await writeFile(join(directory, 'clouds.yaml'), JSON.stringify({ clouds: { example: { auth } } }));
  const place = { env: {}, cwd: directory, home: directory };
  return (await loadConfiguration(file, { place })).warnings;
}

for (const name of ['nodepool-deletes-images.yaml', 'zuul-deletes-images.yaml']) {
  test(`the file nodepool/${name} in the Zuul example loads without a warning`, async (t) => {
    assert.deepEqual(await warningsWith(t, name), []);
  });
}

test('docs/zuul.md shows valid settings for each authentication and for MQTT', async (t) => {
  const fragments = codeBlocks(page, 'yaml')
    .filter((text) => /^(?:auth|mqtt):/.test(text))
    .map((text) => load(text) as { auth?: object; mqtt?: object });
  for (const fragment of fragments)
    assert.deepEqual(await warningsWith(t, 'nodepool-deletes-images.yaml', fragment), []);
  const kinds = fragments.flatMap(({ auth = {} }) => Object.keys(auth));
  assert.deepEqual(new Set(kinds), new Set(Object.keys(ZUUL_SETTINGS.properties.auth.properties)));
  assert.ok(fragments.some(({ mqtt }) => mqtt !== undefined));
});
