// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import {
  DIRECTORY_MODULE,
  DirectoryProvider,
  ImageError,
  ImageRepository,
  type ProviderModule,
} from '@nodepool-builder/image-builder';
import { InstanceRecords, recordedProviders } from '@nodepool-builder/on-instance';
import { FakeImageProvider } from '../../../../test/doubles/fake-image-provider.ts';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import type { Configuration } from '../../src/configuration/configuration.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { Modules } from '../../src/configuration/modules.ts';
import { builderIdentity } from '../../src/daemon/builder-identity.ts';
import { Providers } from '../../src/site/providers.ts';

function open(t: TestContext, used: readonly string[] = []): Providers {
  const directory = temporaryDirectory(t);
  const providers = new Providers({
    logger: () => new RecordingLogger(),
    instances: { directory, owner: 'builder' },
  });
  providers.used(used);
  undoAfter(t, () => providers[Symbol.dispose]());
  return providers;
}

type Entries = Pick<Configuration, 'providers' | 'instanceProviders'>;

/** Reads the entries of `providers` from a file. */
async function entries(t: TestContext, text: string, modules = Modules.builtIn): Promise<Entries> {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'nodepool.yaml');
  writeFileSync(file, `images-dir: /i\nproviders: [${text}]\n`);
  const place = { env: {}, cwd: directory, home: directory };
  return (await loadConfiguration(file, { place, modules })).configuration;
}

/** Returns providers of type qemu, by their accelerator. */
async function qemu(t: TestContext, accelerators: Readonly<Record<string, 'kvm' | 'tcg'>>): Promise<Entries> {
  const written = Object.entries(accelerators).map(
    ([name, accelerator]) => `{name: ${name}, type: qemu, accelerator: ${accelerator}}`,
  );
  return await entries(t, written.join(', '));
}

describe('an image of a provider', () => {
  const provider = {
    name: 'pool',
    type: 'directory',
    'cloud-images': [
      { name: 'debian', 'image-filters': [{ name: 'image-name', values: ['debian'] }] },
      { name: 'fixed', 'image-id': 'x.qcow2' },
    ],
  };

  async function withImage(t: TestContext): Promise<Providers> {
    const providers = open(t);
    const directory = temporaryDirectory(t);
    const configuration = await entries(t, JSON.stringify({ ...provider, directory }));
    providers.configure(configuration);
    const path = join(temporaryDirectory(t), '1.qcow2');
    writeFileSync(path, 'disk');
    await providers.get('pool')?.provider?.upload({
      uploadId: '1',
      imageId: '1',
      imageName: 'debian',
      file: { format: 'qcow2', path, size: 4 },
    });
    return providers;
  }

  it('a provider’s image is chosen by filters, or by a cloud image’s name', async (t) => {
    const providers = await withImage(t);
    const filters = [{ name: 'name', values: ['deb*'] }];
    assert.deepEqual(
      await Promise.all([
        providers.chooseImage('pool', { 'image-filters': filters }),
        providers.chooseImage('pool', { 'cloud-image': 'debian' }),
        providers.chooseImage('pool', { 'cloud-image': 'fixed' }),
      ]),
      ['debian-1.qcow2', 'debian-1.qcow2', 'x.qcow2'],
    );
  });

  it('choosing a provider’s image fails if none passes the filters', async (t) => {
    const providers = await withImage(t);
    const filters = [{ name: 'property:os', values: ['bsd'] }];
    await assert.rejects(providers.chooseImage('pool', { 'image-filters': filters }), {
      code: 'image-not-found',
      message: /no image in provider "pool" matches the filters; 1 with a matching name: its property os/,
    });
    await assert.rejects(providers.chooseImage('pool', { 'cloud-image': 'bsd' }), {
      code: 'invalid-configuration',
      message: /has no cloud image "bsd"; choose one of: debian, fixed/,
    });
    await assert.rejects(providers.chooseImage('qemu', { 'cloud-image': 'debian' }), {
      code: 'invalid-configuration',
      message: /no provider "qemu" stores images here/,
    });
  });
});

describe('providers of instances', () => {
  it('instance providers stay open over a reload that does not change them', async (t) => {
    const providers = open(t);
    providers.configure(await qemu(t, { a: 'tcg', b: 'tcg' }));
    const [a, b, local] = ['a', 'b', 'qemu'].map((name) => providers.instanceProvider(name));
    providers.configure(await qemu(t, { a: 'tcg', b: 'kvm' }));
    assert.equal(providers.instanceProvider('a'), a);
    assert.equal(providers.instanceProvider('qemu'), local);
    assert.notEqual(providers.instanceProvider('b'), b);
  });

  it('instance providers are listed if this process or an earlier one used them, while they are configured', async (t) => {
    const providers = open(t, ['before', 'gone']);
    providers.configure(await qemu(t, { a: 'tcg', before: 'tcg', never: 'tcg' }));
    assert.deepEqual(
      providers.used().map(({ name }) => name),
      ['before'],
    );
    providers.instanceProvider('a');
    assert.deepEqual(
      providers.used().map(({ name }) => name),
      ['before', 'a'],
    );
  });

  it('instance providers are not listed once a reload gives their name to a provider without instances', async (t) => {
    const providers = open(t, ['a', 'b']);
    providers.configure(
      await entries(t, '{name: a, type: directory, directory: /p, images: []}, {name: b, type: qemu}'),
    );
    assert.deepEqual(
      providers.used().map(({ name }) => name),
      ['b'],
    );
  });

  it('an instance provider that is not configured, or runs no instances, causes an error', async (t) => {
    const providers = open(t);
    providers.configure(await entries(t, '{name: pool, type: directory, directory: /p, images: []}'));
    for (const name of ['cloud', 'pool']) {
      assert.throws(() => providers.instanceProvider(name), {
        name: ImageError.name,
        code: 'invalid-configuration',
        message: `no provider "${name}" runs instances here; add one that runs instances to providers and reload`,
      });
    }
  });

  it('instance providers are found in the records of instances that builds left in them', async (t) => {
    const repository = await ImageRepository.open(temporaryDirectory(t));
    undoAfter(t, () => repository.close());
    const claim = await new InstanceRecords(repository).claim('1', new AbortController().signal);
    await claim.write({
      provider: 'cloud',
      phase: 'running',
      stepsDone: 0,
      afterRestart: 'destroy',
      recipe: '',
    });
    claim.release();
    assert.deepEqual(await recordedProviders(repository), ['cloud']);
  });
});

function noting(name: string, directory: string): string {
  return `{name: ${name}, type: noting, directory: ${directory}, image-type: raw, images: []}`;
}

describe('providers of images', () => {
  it('image providers are opened once, with their entry’s format, and stay open over a reload', async (t) => {
    const providers = open(t);
    const text = '{name: pool, type: directory, directory: /p, image-type: raw, images: []}';
    providers.configure(await entries(t, text));
    const { provider } = providers.get('pool') ?? {};
    assert.ok(provider instanceof DirectoryProvider);
    assert.deepEqual([provider.name, provider.formats], ['pool', ['raw']]);
    providers.configure(await entries(t, `${text}, {name: other, type: qemu}`));
    assert.equal(providers.get('pool')?.provider, provider);
    providers.configure(await entries(t, text.replace('/p', '/q')));
    assert.notEqual(providers.get('pool')?.provider, provider);
    assert.equal(providers.get('other'), undefined);
  });

  it('image providers close after the reload that removed or changed them, or on dispose', async (t) => {
    const closed: unknown[] = [];
    const module: ProviderModule = {
      ...DIRECTORY_MODULE,
      type: 'noting',
      images: {
        open: (entry) =>
          Object.assign(new FakeImageProvider({ name: entry.name }), {
            [Symbol.dispose]: () => closed.push(`${entry.name} in ${String(Object(entry).directory)}`),
          }),
      },
    };
    const load = (text: string): Promise<Entries> => entries(t, text, Modules.builtIn.with([module]));
    const providers = open(t);
    const configure = async (...written: string[]): Promise<() => void> => {
      const closeReplaced = providers.configure(await load(written.join(', ')));
      for (const name of ['a', 'b', 'c']) providers.get(name);
      return closeReplaced;
    };
    await configure(noting('a', '/1'), noting('b', '/1'), noting('c', '/1'));
    const first = await configure(noting('a', '/1'), noting('b', '/2'));
    const second = await configure(noting('a', '/1'), noting('b', '/3'));
    assert.deepEqual(closed, []);
    first();
    assert.deepEqual(closed.splice(0), ['b in /1', 'c in /1']);
    providers[Symbol.dispose]();
    assert.deepEqual(closed.splice(0), ['a in /1', 'b in /3', 'b in /2']);
    second();
    assert.deepEqual(closed, [], 'each is closed once');
  });

  it('image providers are absent for a type that takes no images', async (t) => {
    const providers = open(t);
    providers.configure(await qemu(t, { a: 'tcg' }));
    assert.equal(providers.get('a')?.provider, undefined);
    assert.equal(providers.get('a')?.configuration.name, 'a');
  });

  it('image providers fail with the reason if their cloud was not found', async (t) => {
    const providers = open(t);
    providers.configure(await entries(t, '{name: lost, cloud: lost, images: []}'));
    await assert.rejects(async () => await providers.get('lost')?.provider?.list(), /"lost"/);
    await assert.rejects(providers.instanceProvider('lost').list(), /"lost"/);
  });
});

it('a builder’s identity is created once for its images-dir', async (t) => {
  const [one, other] = [temporaryDirectory(t), temporaryDirectory(t)];
  for (const directory of [one, other]) await mkdir(join(directory, '.nodepool-builder'));
  const identity = await builderIdentity(one);
  assert.equal(await builderIdentity(one), identity);
  assert.notEqual(await builderIdentity(other), identity);
});
