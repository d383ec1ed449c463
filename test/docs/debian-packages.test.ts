// Not a unit test: the module checks this host with programs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INSTALLATIONS } from '../../packages/image-builder/src/diagnosis/check-host.ts';
import { DIB_MODULE } from '../../packages/image-builder/src/dib.ts';
import { installedBy, readmeInstallation, readmePackages } from './debian-packages.ts';
import { codeBlocks, readPage } from './markdown.ts';

const forBuilds = await readmePackages();

test('the walk-through with OpenStack installs the same packages as the README', async () => {
  const [install] = codeBlocks(await readPage('docs/openstack-walkthrough.md'), 'sh');
  assert.equal(install, await readmeInstallation());
});

test('the Containerfile for a builder installs the README’s Debian packages', async () => {
  const packages = installedBy(await readPage('examples/containers/Containerfile'));
  assert.deepEqual(packages.toSorted(), ['ca-certificates', ...forBuilds].toSorted());
});

test('npm run quickstart installs the README’s Debian packages', async () => {
  const rows = [...(await readPage('scripts/setup.sh')).matchAll(/^(\S+) +\S+ +quickstart$/gm)];
  assert.deepEqual(rows.map(([, name = '']) => name).toSorted(), forBuilds.toSorted());
});

test('the README’s list contains the packages that doctor names for a Debian image with a boot loader', async () => {
  const diskimage = { name: 'debian', formats: [], envVars: { PATH: '/nowhere' } };
  const results = await Array.fromAsync(
    DIB_MODULE.diagnose?.(
      { elements: ['debian-minimal', 'vm'], 'dib-cmd': '/usr/bin/disk-image-create' },
      diskimage,
      {},
    ) ?? [],
  );
  const needed = results
    .filter(({ area }) => area === 'tools')
    .map(({ subject }) => subject.replace(/^(?:program|keyring) (?:\/usr\/share\/keyrings\/)?/, ''))
    .map((program) => packageIn(INSTALLATIONS[program]) ?? program.replace('.gpg', ''));
  assert.ok(needed.length > 4);
  const dib = packageIn(INSTALLATIONS['disk-image-create']) ?? '';
  assert.deepEqual([...new Set([...needed, dib])].toSorted(), forBuilds.toSorted());
});

function packageIn(installation = ''): string | undefined {
  return /apt-get install (\S+)\)/.exec(installation)?.[1];
}
