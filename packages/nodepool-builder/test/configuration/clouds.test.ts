import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import type { CloudSettings } from '@nodepool-builder/provider-openstack';
import { type LoadedConfiguration, loadConfiguration } from '../../src/configuration/load.ts';
import { formatDiagnostic } from '../../src/yaml/diagnostic.ts';

const SITE = join(import.meta.dirname, 'site');
const NOWHERE = '/does/not/exist';

function warningsOf({ warnings }: LoadedConfiguration): string[] {
  return warnings.map((warning) => formatDiagnostic('nodepool.yaml', warning));
}

describe("a site's whole nodepool.yaml of 2016", () => {
  const load = (): Promise<LoadedConfiguration> =>
    loadConfiguration(join(SITE, 'nodepool.yaml'), { place: { env: {}, cwd: SITE, home: NOWHERE } });

  it('a site’s whole nodepool.yaml from 2016 causes no warning', async () => {
    assert.deepEqual(warningsOf(await load()), []);
  });

  it('a site’s whole nodepool.yaml from 2016 uses the clouds in clouds.yaml, secure.yaml and vendor profiles', async () => {
    const { configuration } = await load();
    const clouds = configuration.providers.map(({ name, prepared }) => {
      assert.ifError(prepared.error);
      const { auth, image, apiTimeout } = prepared.value as CloudSettings;
      return {
        name,
        password: auth.type === 'password' && auth.password,
        region: image.regionName,
        apiTimeout,
      };
    });
    assert.deepEqual(clouds, [
      { name: 'rax-dfw', password: 'swordfish', region: 'DFW', apiTimeout: 60 },
      { name: 'ovh-gra1', password: 'swordfish', region: 'GRA1', apiTimeout: 60 },
      { name: 'old-cloud', password: '20160501', region: undefined, apiTimeout: 60 },
    ]);
  });

  it('a site’s whole nodepool.yaml from 2016 has the clouds’ formats, in which images are built', async () => {
    const { configuration } = await load();
    assert.deepEqual(
      configuration.providers.map(({ imageType }) => imageType),
      ['vhd', 'raw', 'qcow2'],
    );
    assert.deepEqual(
      configuration.diskimages.map(({ name, formats, release }) => [name, formats, release]),
      [
        ['ubuntu-trusty', ['vhd', 'raw', 'qcow2'], 'trusty'],
        ['fedora-24', ['vhd'], '24'],
        ['centos-7', [], ''],
        ['bare-precise', [], ''], // a snapshot image of nodepool's own
      ],
    );
    assert.deepEqual(configuration.diskimages[1]?.envVars, {
      TMPDIR: '/opt/dib_tmp',
      DIB_CHECKSUM: '1',
      DIB_IMAGE_CACHE: '/opt/dib_cache',
      DIB_APT_LOCAL_CACHE: '0',
      FS_TYPE: 'ext3',
      DIB_RELEASE_NAME: 'n',
    });
  });

  it('a site’s whole nodepool.yaml from 2016 is watched together with every file that may describe clouds', async () => {
    const { files } = await load();
    for (const name of ['nodepool.yaml', 'clouds.yaml', 'secure.yaml', 'clouds.json']) {
      assert.ok(files.includes(join(SITE, name)), name);
    }
    assert.ok(files.includes('/etc/openstack/clouds.yaml'));
  });
});

describe('a cloud that cannot be found', () => {
  async function load(t: TestContext, providers: string, clouds?: string): Promise<LoadedConfiguration> {
    const directory = await mkdtemp(join(tmpdir(), 'clouds-'));
    t.after(() => rm(directory, { recursive: true }));
    const file = join(directory, 'nodepool.yaml');
    await writeFile(file, `images-dir: /i\ndiskimages: [{name: a}]\nproviders:\n${providers}`);
    if (clouds !== undefined) await writeFile(join(directory, 'clouds.yaml'), clouds);
    return await loadConfiguration(file, { place: { env: {}, cwd: directory, home: NOWHERE } });
  }
  const images = 'images: [{name: n, diskimage: a}]';

  it('a missing cloud causes a warning, its format is qcow2, and other providers can be used', async (t) => {
    const loaded = await load(
      t,
      `  - {name: lost, cloud: lost, ${images}}\n  - {name: pool, type: directory, directory: /p, ${images}}\n`,
      'clouds: {other: {}}\n',
    );
    const [warning = '', ...others] = warningsOf(loaded);
    assert.deepEqual(others, []);
    assert.match(
      warning,
      /^nodepool\.yaml:4:5: warning: providers\[0\]: .*"lost".*; until then uploads to it fail$/,
    );
    const [lost, pool] = loaded.configuration.providers;
    assert.equal(lost?.imageType, 'qcow2');
    assert.ok(lost.prepared.error instanceof CloudError);
    assert.equal(lost.prepared.error.code, 'invalid-settings');
    assert.deepEqual(pool?.prepared, { value: undefined });
    assert.deepEqual(loaded.configuration.diskimages[0]?.formats, ['qcow2']);
  });

  it('a missing cloud does not override the format in image-type', async (t) => {
    const { configuration } = await load(t, `  - {name: lost, cloud: lost, image-type: raw, ${images}}\n`);
    assert.equal(configuration.providers[0]?.imageType, 'raw');
  });

  it('a cloud file that cannot be read is reported once, however many providers need it', async (t) => {
    const loaded = await load(
      t,
      `  - {name: a, cloud: lost, ${images}}\n  - {name: b, cloud: lost, ${images}}\n`,
      'clouds: [\n',
    );
    const skipped = warningsOf(loaded).filter((warning) => warning.includes('clouds.yaml is skipped'));
    assert.equal(skipped.length, 1, warningsOf(loaded).join('\n'));
    assert.match(skipped[0] ?? '', /^nodepool\.yaml:4:5: /, 'where the first of them stands');
  });

  it('the warning about a missing cloud shows no secret', async (t) => {
    const loaded = await load(
      t,
      `  - {name: a, username: u, password: hunter2, auth-url: nonsense, project-name: p, ${images}}\n`,
    );
    assert.equal(warningsOf(loaded).length, 1);
    assert.doesNotMatch(warningsOf(loaded).join(), /hunter2/);
  });
});

it('a provider with web-download needs the URL of images-dir', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'clouds-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'nodepool.yaml');
  await writeFile(file, 'images-dir: /i\nproviders: [{name: p, images: [], image-import: web-download}]\n');
  const loaded = loadConfiguration(file, { place: { env: {}, cwd: directory, home: NOWHERE } });
  await assert.rejects(loaded, /lacks the key "image-import-url", which image-import: web-download needs/);
});
