import assert from 'node:assert/strict';
import { glob, readFile } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../..');

/** Packages that the sources of each package may import. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  'gearman-node': [],
  'image-builder': [],
  'image-manager': ['gearman-node', 'image-builder'],
  'nodepool-builder': [
    'gearman-node',
    'image-builder',
    'image-manager',
    'on-instance',
    'provider-openstack',
    'zuul-images',
  ],
  'on-instance': ['image-builder'],
  'provider-openstack': ['image-builder'],
  'zuul-images': ['image-builder'],
};

/** Modules that each source file imports, types included. */
async function readImports(): Promise<ReadonlyMap<string, readonly string[]>> {
  const imports = new Map<string, readonly string[]>();
  for await (const file of glob('packages/*/src/**/*.ts', { cwd: ROOT })) {
    const text = await readFile(join(ROOT, file), 'utf8');
    const modules = [...text.matchAll(/^(?:import|export)\b[^;'"]*'([^']+)';|\bimport\('([^']+)'\)/gm)];
    imports.set(
      file,
      modules.map(([, name, dynamic]) => name ?? dynamic ?? ''),
    );
  }
  return imports;
}

test('imports between packages point one way', async () => {
  const imports = await readImports();
  assert.ok(imports.size > 100);
  const found = new Map(Object.keys(ARROWS).map((name) => [name, new Set<string>()]));
  for (const [file, modules] of imports) {
    const own = file.split('/')[1] ?? '';
    for (const module of modules) {
      const target = /^@nodepool-builder\/([^/]+)/.exec(module)?.[1];
      if (target !== undefined) found.get(own)?.add(target);
    }
  }
  for (const [name, targets] of found) assert.deepEqual([...targets].toSorted(), ARROWS[name], name);
});

test('no cycle of imports, types included', async () => {
  const imports = await readImports();
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (done.has(file)) return;
    const start = path.indexOf(file);
    assert.ok(start === -1, [...path.slice(start), file].join(' imports '));
    for (const module of imports.get(file) ?? []) {
      if (module.startsWith('.')) visit(normalize(join(file, '..', module)), [...path, file]);
    }
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
});
