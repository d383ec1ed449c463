import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { DibSettings } from '@nodepool-builder/image-builder';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import type { DiskImageConfiguration } from '../../src/configuration/configuration.ts';
import { type LoadedConfiguration, loadConfiguration } from '../../src/configuration/load.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/yaml/diagnostic.ts';

/** Loads a file with these lines, starting at line 3. */
async function load(t: TestContext, diskimages: string): Promise<LoadedConfiguration> {
  const file = join(temporaryDirectory(t), 'nodepool.yaml');
  writeFileSync(file, `images-dir: /i\ndiskimages:\n${diskimages}`);
  return await loadConfiguration(file);
}

async function imagesOf(
  t: TestContext,
  text: string,
): Promise<Readonly<Record<string, DiskImageConfiguration>>> {
  const { configuration, warnings } = await load(t, text);
  assert.deepEqual(warnings, []);
  return Object.fromEntries(configuration.diskimages.map((diskimage) => [diskimage.name, diskimage]));
}

async function diagnosticsOf(t: TestContext, text: string): Promise<string[]> {
  const error = await load(t, text).then(
    () => assert.fail('the configuration was accepted'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ConfigurationError, String(error));
  return error.diagnostics.map((diagnostic) => formatDiagnostic('nodepool.yaml', diagnostic));
}

const FAMILY = `
  - name: base
    abstract: true
    elements: [vm, simple-init]
    env-vars: {DIB_CHECKSUM: '1', DIB_MIRROR: base}
    formats: [raw]
    build-timeout: 60
    rebuild-age: 7200
    dib-cmd: /usr/bin/base-dib
    qemu-img-options: compat=1.1
    keep: 5
    pause: true
  - name: noble
    parent: jammy
    release: noble
    elements: 'noble-extras "two words"'
    rebuild-cron: '14 2 * * *'
    pause: false
  - name: jammy
    parent: base
    release: 22.0
    elements: [ubuntu-minimal]
    env-vars: {DIB_MIRROR: jammy, DIB_GRUB_TIMEOUT: '0'}
    formats: [qcow2]
  - name: alone
    elements: [vm]
`;

function settingsOf(diskimage: DiskImageConfiguration | undefined): DibSettings {
  return diskimage?.settings as DibSettings;
}

describe('a disk image with a parent', () => {
  it('a disk image adds its elements and env-vars to its ancestors’, in any order in the file', async (t) => {
    const { jammy, noble } = await imagesOf(t, FAMILY);
    assert.deepEqual(settingsOf(jammy).elements, ['vm', 'simple-init', 'ubuntu-minimal']);
    assert.deepEqual(settingsOf(noble).elements, [
      'vm',
      'simple-init',
      'ubuntu-minimal',
      'noble-extras',
      'two words',
    ]);
    const variables = { DIB_CHECKSUM: '1', DIB_MIRROR: 'jammy', DIB_GRUB_TIMEOUT: '0' };
    assert.deepEqual(jammy?.envVars, variables);
    assert.deepEqual(noble?.envVars, variables);
  });

  it('a disk image inherits its parent’s other values unless its own is neither empty nor false', async (t) => {
    const { jammy, noble } = await imagesOf(t, FAMILY);
    assert.deepEqual(jammy?.formats, ['qcow2']);
    assert.deepEqual([jammy?.release, noble?.release], ['22.0', 'noble']);
    for (const image of [jammy, noble]) {
      assert.equal(image?.buildTimeout, 60);
      assert.equal(settingsOf(image)['dib-cmd'], '/usr/bin/base-dib');
      assert.equal(settingsOf(image)['qemu-img-options'], 'compat=1.1');
      assert.equal(image?.keep, 5);
      assert.equal(image?.pause, true, 'as in nodepool');
    }
  });

  it('a disk image has its own rebuild times if it sets any, in either form', async (t) => {
    const { jammy, noble } = await imagesOf(t, FAMILY);
    assert.deepEqual([jammy?.rebuildAge, jammy?.rebuildCron], [7200, undefined]);
    assert.deepEqual([noble?.rebuildAge, noble?.rebuildCron], [undefined, '14 2 * * *']);
  });

  it('a disk image may have a parent that is also built', async (t) => {
    const images = await imagesOf(t, FAMILY);
    assert.deepEqual(Object.keys(images), ['noble', 'jammy', 'alone']);
    assert.deepEqual(settingsOf(images.alone).elements, ['vm']);
  });
});

describe('an abstract disk image', () => {
  it('an abstract disk image is never built, and needs nothing but a name', async (t) => {
    assert.deepEqual(await imagesOf(t, '  - {name: base, abstract: true, builder: on-instance}\n'), {});
  });

  it('an abstract disk image cannot be a provider’s image', async (t) => {
    const providers = `providers:
  - {name: p, type: directory, directory: /p, images: [{name: n, diskimage: base}]}
`;
    assert.deepEqual(await diagnosticsOf(t, `  - {name: base, abstract: true}\n${providers}`), [
      'nodepool.yaml:5:66: providers[0].images[0].diskimage "base" is abstract: it is never built; name a disk image that inherits from it',
    ]);
  });
});

describe('an invalid parent', () => {
  it('a parent that is not among the disk images is rejected', async (t) => {
    assert.deepEqual(await diagnosticsOf(t, '  - name: a\n    parent: base\n'), [
      'nodepool.yaml:4:5: diskimages[0].parent "base" is not among diskimages; name another disk image, or remove it',
    ]);
  });

  it('a parent that descends from the disk image, or is the disk image itself, is rejected', async (t) => {
    const text = `  - {name: a, parent: b}
  - {name: b, parent: c}
  - {name: c, parent: b}
  - {name: d, parent: d}
`;
    assert.deepEqual(await diagnosticsOf(t, text), [
      'nodepool.yaml:4:15: diskimages[1].parent leads back to the disk image itself: b, c, b; remove one of these parents',
      'nodepool.yaml:5:15: diskimages[2].parent leads back to the disk image itself: c, b, c; remove one of these parents',
      'nodepool.yaml:6:15: diskimages[3].parent leads back to the disk image itself: d, d; remove one of these parents',
    ]);
  });
});
