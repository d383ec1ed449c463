import assert from 'node:assert/strict';
import { glob, readFile } from 'node:fs/promises';
import { join, normalize, relative } from 'node:path';
import { test } from 'node:test';
import { Modules, OPTIONAL_PACKAGES } from '../../packages/nodepool-builder/src/configuration/modules.ts';

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
    'provenance',
    'provider-openstack',
    'zuul-images',
  ],
  'on-instance': ['image-builder'],
  provenance: ['image-builder'],
  'provider-aws': ['image-builder'],
  'provider-azure': ['image-builder'],
  'provider-gce': ['image-builder'],
  'provider-oci': ['image-builder'],
  'provider-openstack': ['image-builder'],
  'provider-s3': ['image-builder'],
  'zuul-images': ['image-builder'],
};

/** Folders of nodepool-builder, each of which imports only from folders before it. */
const FOLDERS = [
  'terms',
  'yaml',
  'protocol',
  'configuration',
  'logging',
  'site',
  'attestation',
  'daemon',
  'web',
  'commands',
];

/** Parts of the core, each of which imports only parts in its own row or before. Any part may import the rest. */
const CORE_LAYERS = [
  ['formats', 'formats.ts', 'http', 'process', 'record-directory.ts'],
  ['repository', 'repository.ts'],
  ['context.ts'],
  ['base.ts'],
  ['cloud', 'instance', 'modules.ts'],
  ['command.ts', 'dib.ts', 'directory'],
  ['index.ts', 'internal.ts', 'plugin.ts', 'testing'],
];

/** Words for systems that only modules outside the core may name. */
const BRANCHES = /\b(?:zuul|nova|glance|keystone|openstack|winrm|powershell|aws|ec2|azure|gce)\b/i;

/** Max number of names that each public entry of the core exports. */
const MAX_EXPORTS = { index: 105, plugin: 45 };

/** Returns the modules that each file imports, including types. */
async function readImports(
  files = 'packages/*/src/**/*.ts',
): Promise<ReadonlyMap<string, readonly string[]>> {
  const imports = new Map<string, readonly string[]>();
  for await (const file of glob(files, { cwd: ROOT })) {
    const text = await readFile(join(ROOT, file), 'utf8');
    const modules = [...text.matchAll(/^(?:import|export)\b[^;'"]*'([^']+)';|\bimport\('([^']+)'\)/gm)];
    imports.set(
      file,
      modules.map(([, name, dynamic]) => name ?? dynamic ?? ''),
    );
  }
  return imports;
}

/** Returns the lines in files that match, with their locations. */
async function linesWith(pattern: RegExp, ...files: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const file of glob(files, { cwd: ROOT })) {
    const lines = (await readFile(join(ROOT, file), 'utf8')).split('\n');
    found.push(
      ...lines.flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
    );
  }
  return found;
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

test('a folder of nodepool-builder imports only from folders before it', async () => {
  const root = 'packages/nodepool-builder/src';
  const folderOf = (file: string): string => relative(root, file).split('/')[0] ?? '';
  const imports = await readImports(`${root}/*/**/*.ts`);
  assert.deepEqual(new Set(Array.from(imports.keys(), folderOf)), new Set(FOLDERS));
  const backwards = Array.from(imports).flatMap(([file, modules]) =>
    modules
      .filter((name) => name.startsWith('.'))
      .map((name) => normalize(join(file, '..', name)))
      .filter((target) => FOLDERS.indexOf(folderOf(target)) > FOLDERS.indexOf(folderOf(file)))
      .map((target) => `${file} imports ${target}`),
  );
  assert.deepEqual(backwards, []);
});

test('the sources have no cycle of imports, types included', async () => {
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

test('a package’s tests do not import another package’s tests', async () => {
  const imports = await readImports('packages/*/test/**/*.ts');
  assert.ok(imports.size > 100);
  for (const [file, modules] of imports) {
    const own = file.split('/').slice(0, 2).join('/');
    for (const module of modules.filter((name) => name.startsWith('.'))) {
      const target = normalize(join(file, '..', module));
      assert.ok(
        !/^packages\/[^/]+\/test\//.test(target) || target.startsWith(`${own}/`),
        `${file}: ${module}`,
      );
    }
  }
});

for (const [entry, max] of Object.entries(MAX_EXPORTS)) {
  test(`the entry ${entry} of the core exports at most ${max} names`, async () => {
    const text = await readFile(join(ROOT, `packages/image-builder/src/${entry}.ts`), 'utf8');
    const lists = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)];
    const names = lists.flatMap(([, list = '']) => list.split(',').filter((name) => name.trim() !== ''));
    assert.ok(names.length > 10);
    assert.ok(names.length <= max, `${names.length} names`);
  });
}

test('examples and documents import only public entries of the core', async () => {
  const files = ['examples/**/*.{ts,md}', 'docs/*.md', 'packages/*/README.md', 'README.md'];
  assert.deepEqual(await linesWith(/image-builder\/(?!plugin\b|testing\b)\w+'/, ...files), []);
});

test('a part of the core imports only from its own layer and earlier ones', async () => {
  const root = 'packages/image-builder/src';
  const layerOf = (file: string): number => {
    const part = relative(root, file).split('/')[0] ?? '';
    return CORE_LAYERS.findIndex((parts) => parts.includes(part));
  };
  const imports = await readImports(`${root}/**/*.ts`);
  const backwards = Array.from(imports).flatMap(([file, modules]) =>
    modules
      .filter((name) => name.startsWith('.'))
      .map((name) => normalize(join(file, '..', name)))
      .filter((target) => layerOf(file) !== -1 && layerOf(target) > layerOf(file))
      .map((target) => `${file} imports ${target}`),
  );
  assert.deepEqual(backwards, []);
});

test('the core names no cloud, remote shell or other system that builds images', async () => {
  assert.deepEqual(await linesWith(BRANCHES, 'packages/image-builder/src/**/*.ts'), []);
});

test('no file outside a module compares a builder’s or provider’s type with a name', async () => {
  const { builders, providers } = Modules.builtIn;
  const types = [...builders.keys(), ...providers.keys(), ...Object.keys(OPTIONAL_PACKAGES)];
  const comparison = new RegExp(`\\b(?:type|builder)\\)? [!=]== '(?:${types.join('|')})'`);
  const files = ['packages/{image-builder,image-manager,nodepool-builder}/src/**/*.ts'];
  assert.deepEqual(await linesWith(comparison, ...files), []);
});
