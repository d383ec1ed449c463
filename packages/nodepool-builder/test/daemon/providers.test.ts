// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { DirectoryProvider, ImageError, ImageRepository } from '@nodepool-builder/image-builder';
import { InstanceRecords, recordedProviders } from '@nodepool-builder/on-instance';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import type { Configuration } from '../../src/configuration/configuration.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { builderIdentity } from '../../src/daemon/builder-identity.ts';
import { Providers } from '../../src/daemon/providers.ts';

function open(t: TestContext, used: readonly string[] = []): Providers {
  const directory = temporaryDirectory(t);
  const providers = new Providers({
    logger: () => new RecordingLogger(),
    environment: {},
    instances: { directory, owner: 'builder' },
  });
  providers.use(used);
  undoAfter(t, () => providers[Symbol.dispose]());
  return providers;
}

type Entries = Pick<Configuration, 'providers' | 'instanceProviders'>;

/** The entries of `providers`, read from a file. */
async function entries(t: TestContext, text: string): Promise<Entries> {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'nodepool.yaml');
  writeFileSync(file, `images-dir: /i\nproviders: [${text}]\n`);
  const place = { env: {}, cwd: directory, home: directory };
  return (await loadConfiguration(file, { place })).configuration;
}

/** Providers of type qemu, by their memory. */
async function qemu(t: TestContext, memory: Readonly<Record<string, number>>): Promise<Entries> {
  const written = Object.entries(memory).map(
    ([name, size]) => `{name: ${name}, type: qemu, memory: ${size}}`,
  );
  return await entries(t, written.join(', '));
}

describe('providers of instances', () => {
  it('stay open over a reload that does not change them', async (t) => {
    const providers = open(t);
    providers.configure(await qemu(t, { a: 256, b: 256 }));
    const [a, b, local] = ['a', 'b', 'qemu'].map((name) => providers.instanceProvider(name));
    providers.configure(await qemu(t, { a: 256, b: 512 }));
    assert.equal(providers.instanceProvider('a'), a);
    assert.equal(providers.instanceProvider('qemu'), local);
    assert.notEqual(providers.instanceProvider('b'), b);
  });

  it('are listed once this process or an earlier one has used them, while they are configured', async (t) => {
    const providers = open(t, ['before', 'gone']);
    providers.configure(await qemu(t, { a: 256, before: 256, never: 256 }));
    assert.deepEqual(
      providers.used.map(({ name }) => name),
      ['before'],
    );
    providers.instanceProvider('a');
    assert.deepEqual(
      providers.used.map(({ name }) => name),
      ['before', 'a'],
    );
  });

  it('are not listed once a reload gives their name to a provider without instances', async (t) => {
    const providers = open(t, ['a', 'b']);
    providers.configure(
      await entries(t, '{name: a, type: directory, directory: /p, images: []}, {name: b, type: qemu}'),
    );
    assert.deepEqual(
      providers.used.map(({ name }) => name),
      ['b'],
    );
  });

  it('cause an error if they are not configured, or run no instances', async (t) => {
    const providers = open(t);
    providers.configure(await entries(t, '{name: pool, type: directory, directory: /p, images: []}'));
    for (const name of ['cloud', 'pool']) {
      assert.throws(() => providers.instanceProvider(name), {
        name: ImageError.name,
        code: 'invalid-configuration',
        message: `no provider "${name}" runs instances here; add one that does to providers and reload`,
      });
    }
  });

  it('are in the records of the instances that builds left in them', async (t) => {
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

describe('providers of images', () => {
  it('are opened once, with the format of their entry, and stay open over a reload', async (t) => {
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

  it('are absent for a type that takes no images', async (t) => {
    const providers = open(t);
    providers.configure(await qemu(t, { a: 256 }));
    assert.equal(providers.get('a')?.provider, undefined);
    assert.equal(providers.get('a')?.configuration.name, 'a');
  });

  it('fail with the reason if their cloud was not found', async (t) => {
    const providers = open(t);
    providers.configure(await entries(t, '{name: lost, cloud: lost, images: []}'));
    await assert.rejects(async () => await providers.get('lost')?.provider?.list(), /"lost"/);
    await assert.rejects(providers.instanceProvider('lost').list(), /"lost"/);
  });
});

it('the identity of a builder is created once for its images-dir', async (t) => {
  const [one, other] = [temporaryDirectory(t), temporaryDirectory(t)];
  for (const directory of [one, other]) await mkdir(join(directory, '.nodepool-builder'));
  const identity = await builderIdentity(one);
  assert.equal(await builderIdentity(one), identity);
  assert.notEqual(await builderIdentity(other), identity);
});
