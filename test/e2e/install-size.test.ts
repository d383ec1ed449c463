// Only in test:all: it installs packed packages.
import assert from 'node:assert/strict';
import { glob, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  npmInstall,
  packagesOfTheCommand,
  packPackages,
  readManifests,
} from '../fixtures/packed-packages.ts';

/**
 * Third-party packages and their size in bytes. Version 0.1.0, without cloud provider packages, installed 201 packages
 * of 30.7 MB. Provenance added 4 of 4.9 MB, mostly the models and schemas of CycloneDX. A twentieth is left for new
 * versions of these packages.
 */
const MAX = { packages: 215, bytes: 37.4e6 };

/** Empty project into which the command is installed from its tarballs. */
let site: string;
/** Directory names of the packages that the command installs. */
let ours: readonly string[];

before(async () => {
  site = await mkdtemp(join(tmpdir(), 'install-size-'));
  ours = await packagesOfTheCommand();
  const tarballs = await packPackages(ours, join(site, 'packed'));
  await npmInstall(site, tarballs.values());
});
after(() => rm(site, { recursive: true, force: true }));

describe('npm install nodepool-builder', () => {
  it('npm install nodepool-builder installs no cloud provider, and no SDK that only these need', async () => {
    const manifests = await readManifests();
    const needed = new Set(ours.flatMap((name) => Object.keys(manifests.get(name)?.dependencies ?? {})));
    const optional = [...manifests]
      .filter(([directory]) => !ours.includes(directory))
      .flatMap(([, { name, dependencies = {} }]) => [name, ...Object.keys(dependencies)])
      .filter((name) => !needed.has(name));
    const installed = new Set((await installedPackages()).map(({ name }) => name));
    assert.deepEqual(
      [...installed].filter(
        (name) => optional.includes(name) || /^@(?:aws-sdk|azure|google-cloud)\//.test(name),
      ),
      [],
    );
    assert.ok(installed.has('nodepool-builder'));
  });

  it(`npm install nodepool-builder installs at most ${MAX.packages} foreign packages, of at most ${MAX.bytes / 1e6} MB`, async () => {
    const manifests = await readManifests();
    const own = new Set(ours.map((name) => manifests.get(name)?.name));
    const others = (await installedPackages()).filter(({ name }) => !own.has(name));
    const bytes = others.reduce((sum, one) => sum + one.bytes, 0);
    const found = `${others.length} packages of ${(bytes / 1e6).toFixed(1)} MB`;
    assert.ok(others.length > 100 && bytes > 10e6, found);
    assert.ok(others.length <= MAX.packages && bytes <= MAX.bytes, found);
  });
});

interface InstalledPackage {
  readonly name: string;
  readonly bytes: number;
}

/** Lists the packages in `node_modules`, including nested ones. Each version of a package counts. */
async function installedPackages(): Promise<readonly InstalledPackage[]> {
  const sizes = new Map<string, number>();
  for await (const path of glob('node_modules/**', { cwd: site })) {
    const file = await stat(join(site, path));
    const [, directory] =
      /^(.*node_modules\/(?:@[^/]+\/)?[^./@][^/]*)\//.exec(path.replaceAll(sep, '/')) ?? [];
    if (directory === undefined || !file.isFile()) continue;
    sizes.set(directory, (sizes.get(directory) ?? 0) + file.size);
  }
  return Array.from(sizes, ([directory, bytes]) => ({
    name: directory.slice(directory.lastIndexOf('node_modules/') + 'node_modules/'.length),
    bytes,
  }));
}
