import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, glob, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../fixtures/scratch-directory.ts';
import { codeBlocks, ROOT, readPage } from './markdown.ts';

/** What belongs to the project, unlike what npm and typedoc write. */
function isOurs(path: string): boolean {
  return basename(path) !== 'node_modules' && !path.includes('docs/api');
}

/** Files of a package's tarball; packed in a copy, because npm first copies documents into the package. */
async function packedFiles(directory: string, name: string): Promise<string[]> {
  const options = { cwd: join(directory, 'packages', name) };
  const args = ['pack', '--dry-run', '--json', '--foreground-scripts=false'];
  const { stdout } = await promisify(execFile)('npm', args, options);
  const [{ files }] = JSON.parse(stdout) as [{ files: readonly { path: string }[] }];
  return files.map(({ path }) => path);
}

test('each tarball has the licence, a README, its sources and its programs; that of the command has much more', async (t) => {
  const directory = temporaryDirectory(t);
  for (const name of ['packages', 'docs', 'examples', 'scripts/packed-files.mjs']) {
    await cp(join(ROOT, name), join(directory, name), { recursive: true, filter: isOurs });
  }
  const licence = await readPage('LICENSE');
  for await (const path of glob('packages/*/package.json', { cwd: ROOT })) {
    const name = path.split('/')[1] ?? '';
    const files = await packedFiles(directory, name);
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

test('a package of a scope can be published without a paid plan', async () => {
  for await (const path of glob('packages/*/package.json', { cwd: ROOT })) {
    const manifest = JSON.parse(await readFile(join(ROOT, path), 'utf8')) as {
      name: string;
      publishConfig?: { access?: string };
    };
    if (manifest.name.startsWith('@')) assert.equal(manifest.publishConfig?.access, 'public', manifest.name);
  }
});
