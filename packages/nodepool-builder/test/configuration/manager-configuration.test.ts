import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { ManagedDiskImage, ManagerConfiguration } from '@nodepool-builder/image-manager';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { toManagerConfiguration } from '../../src/configuration/manager-configuration.ts';

const PROVIDERS = `
providers:
  - {name: local, type: directory, directory: /pool, images: [{name: debian-12, diskimage: debian, pause: true}, {name: elsewhere}]}
`;

async function managerConfiguration(
  t: TestContext,
  text: string,
  secure?: string,
): Promise<ManagerConfiguration> {
  const directory = temporaryDirectory(t);
  const [file, secureFile] = [join(directory, 'nodepool.yaml'), join(directory, 'secure.yaml')];
  await writeFile(file, `images-dir: images\n${text}`);
  if (secure !== undefined) await writeFile(secureFile, secure);
  const { configuration } = await loadConfiguration(file, secure === undefined ? {} : { secure: secureFile });
  return toManagerConfiguration(configuration);
}

async function diskimage(t: TestContext, entry: string, secure?: string): Promise<ManagedDiskImage> {
  const { diskimages } = await managerConfiguration(t, `diskimages:\n  - {name: debian, ${entry}}`, secure);
  return diskimages[0] ?? assert.fail('no disk image');
}

describe("a manager's configuration", () => {
  it('a manager’s configuration has the documented defaults', async (t) => {
    const { diskimages, providers, timing } = await managerConfiguration(
      t,
      `diskimages: [{name: debian}]\n${PROVIDERS}`,
    );
    assert.deepEqual(
      diskimages.map(({ digest: _, ...rest }) => rest),
      [{ name: 'debian', pause: false, rebuildAge: 86_400, keep: 2, buildTimeout: 28_800 }],
    );
    assert.deepEqual(providers, [
      {
        name: 'local',
        pause: false,
        uploadTimeout: 86_400,
        images: [{ name: 'debian-12', diskimage: 'debian', pause: true }],
      },
    ]);
    assert.deepEqual(timing, {
      retryDelay: 60,
      maxRetryDelay: 3600,
      orphanScanInterval: 600,
      absenceTimeout: 1800,
    });
  });

  for (const [entry, cron, expected] of [
    ['elements: [vm]', '', { rebuildAge: 86_400, rebuildCron: undefined }],
    ['elements: [vm]', '14 2 * * *', { rebuildAge: undefined, rebuildCron: '14 2 * * *' }],
    ['rebuild-age: 60', '14 2 * * *', { rebuildAge: 60, rebuildCron: undefined }],
    ["rebuild-cron: '0 5 * * 1'", '14 2 * * *', { rebuildAge: undefined, rebuildCron: '0 5 * * 1' }],
    ["rebuild-age: 60, rebuild-cron: '0 5 * * 1'", '', { rebuildAge: 60, rebuildCron: '0 5 * * 1' }],
  ] as const) {
    it(`a manager’s rebuild times with ${entry} and image-update ${cron || 'absent'} are read`, async (t) => {
      const section = cron === '' ? '' : `\ncron: {image-update: '${cron}'}`;
      const { diskimages } = await managerConfiguration(
        t,
        `diskimages:\n  - {name: debian, ${entry}}${section}`,
      );
      const [{ rebuildAge, rebuildCron } = assert.fail('no disk image')] = diskimages;
      assert.deepEqual({ rebuildAge, rebuildCron }, expected);
    });
  }

  it('a disk image’s digest changes with the image’s content', async (t) => {
    const plain = await diskimage(t, 'elements: [vm], env-vars: {A: "1", B: "2"}');
    for (const entry of [
      'elements: [vm, grub2], env-vars: {A: "1", B: "2"}',
      'elements: [vm], env-vars: {A: "1", B: "3"}',
      'elements: [vm], release: trixie, env-vars: {A: "1", B: "2"}',
      'elements: [vm], qemu-img-options: compat=1.1, env-vars: {A: "1", B: "2"}',
      'elements: [vm], dib-cmd: my-dib, env-vars: {A: "1", B: "2"}',
    ]) {
      assert.notEqual((await diskimage(t, entry)).digest, plain.digest, entry);
    }
  });

  it('a disk image’s digest is the same for any order of keys and any formats', async (t) => {
    const plain = await diskimage(t, 'elements: [vm], env-vars: {A: "1", B: "2"}');
    const other = await diskimage(t, 'env-vars: {B: "2", A: "1"}, formats: [raw], elements: [vm], keep: 5');
    assert.equal(other.digest, plain.digest);
  });

  it('a Zuul image’s digest changes with the Zuul builds that it imports, but not with access to them', async (t) => {
    const zuulImage = async (entry: string): Promise<ManagedDiskImage> => {
      const needed = 'api-url: "https://zuul/", project: p, job: j, artifacts: [{format: raw, type: r}]';
      const { diskimages } = await managerConfiguration(t, `zuul-images: {noble: {${needed}, ${entry}}}\n`);
      return diskimages[0] ?? assert.fail('no disk image');
    };
    const { digest, ...plain } = await zuulImage('pipelines: [post]');
    assert.deepEqual(plain, {
      name: 'noble',
      pause: false,
      isImported: true,
      keep: 2,
      buildTimeout: 28_800,
    });
    assert.equal(
      (await zuulImage('pipelines: [post], auth: {token-file: t}, poll-interval: 5')).digest,
      digest,
    );
    for (const entry of ['pipelines: [periodic]', 'pipelines: [post], branch: main']) {
      assert.notEqual((await zuulImage(entry)).digest, digest, entry);
    }
  });

  it('the digest of an image built on an instance changes with the steps, but not with time limits', async (t) => {
    const made = async (keys: string): Promise<ManagedDiskImage> =>
      await diskimage(t, `builder: on-instance, on-instance: {base-image: /b.raw, ${keys}}`);
    const { digest, ...plain } = await made('steps: [apt-get update]');
    assert.deepEqual(plain, {
      name: 'debian',
      pause: false,
      rebuildAge: 86_400,
      keep: 2,
      buildTimeout: 28_800,
    });
    const watched = await made('steps: [apt-get update], private-key: k, keep-on-failure: 60');
    assert.equal(watched.digest, digest);
    for (const keys of ['steps: [apt-get upgrade]', 'steps: [apt-get update], shell: powershell']) {
      assert.notEqual((await made(keys)).digest, digest, keys);
    }
  });

  it('a disk image’s digest is the same with and without secrets, which only builders know', async (t) => {
    const plain = await diskimage(t, 'elements: [vm], env-vars: {A: "1"}');
    const secure = 'diskimages: [{name: debian, env-vars: {PASSWORD: hunter2}}]';
    assert.equal((await diskimage(t, 'elements: [vm], env-vars: {A: "1"}', secure)).digest, plain.digest);
  });
});
