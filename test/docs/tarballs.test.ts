// Only in test:all: it packs every package.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { copyPackages, readManifests } from '../fixtures/packed-packages.ts';
import { temporaryDirectory } from '../fixtures/scratch-directory.ts';
import { codeBlocks, readPage } from './markdown.ts';

/** Files of each package's tarball. They are packed in a copy, because npm first copies documents into the packages. */
async function packedFiles(directory: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const args = ['pack', '--dry-run', '--json', '--foreground-scripts=false', '--workspaces'];
  const { stdout } = await promisify(execFile)('npm', args, { cwd: directory, maxBuffer: 2 ** 26 });
  const packages = JSON.parse(stdout) as { name: string; files: readonly { path: string }[] }[];
  return new Map(packages.map(({ name, files }) => [name, files.map(({ path }) => path)]));
}

test('each tarball has the licence, a README, its sources and its programs', async (t) => {
  const directory = temporaryDirectory(t);
  await copyPackages(directory);
  const licence = await readPage('LICENSE');
  const packed = await packedFiles(directory);
  for (const [name, manifest] of await readManifests()) {
    const files = packed.get(manifest.name) ?? [];
    for (const file of [
      'LICENSE',
      'README.md',
      'package.json',
      'dist/index.js',
      'dist/index.d.ts',
      'src/index.ts',
    ]) {
      assert.ok(files.includes(file), `${name}: ${file}`);
    }
    assert.equal(await readPage(`packages/${name}/LICENSE`), licence);
    assert.deepEqual(
      files.filter((file) => /^(?:test|node_modules)\/|tsbuildinfo/.test(file)),
      [],
    );
    if (name === 'image-builder') assert.ok(files.includes('elements/debian-fixes/README.md'));
    if (name !== 'nodepool-builder') continue;
    const units = ['all-in-one', 'builder', 'manager'].map(
      (unit) => `examples/systemd/nodepool-${unit}.service`,
    );
    for (const file of [...units, 'bin/nodepool-builder.js', 'docs/installing.md', 'nodepool.schema.json']) {
      assert.ok(files.includes(file), `${name}: ${file}`);
    }
    const [install = ''] = codeBlocks(await readPage('README.md'), 'sh');
    const [, example = ''] = /^cp (\S+nodepool\.yaml) \/etc\/nodepool\b/m.exec(install) ?? [];
    assert.ok(files.includes(`examples/${example}`), `examples/${example}, which README.md copies`);
  }
});

test('a scoped package can be published without a paid plan', async () => {
  for (const { name, publishConfig } of (await readManifests()).values()) {
    if (name.startsWith('@')) assert.equal(publishConfig?.access, 'public', name);
  }
});
