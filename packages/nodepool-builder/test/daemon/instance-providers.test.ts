// Not a unit test: it starts flock.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { ImageError, ImageRepository } from '@nodepool-builder/image-builder';
import { InstanceRecords } from '@nodepool-builder/on-instance';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import type { Configuration } from '../../src/configuration/configuration.ts';
import { builderIdentity } from '../../src/daemon/builder-identity.ts';
import { InstanceProviders, rememberedProviders } from '../../src/daemon/instance-providers.ts';
import { temporaryDirectory } from '../temporary-directory.ts';

function open(t: TestContext, used: readonly string[] = []): InstanceProviders {
  const providers = new InstanceProviders({
    directory: temporaryDirectory(t),
    owner: 'builder',
    logger: () => new RecordingLogger(),
    environment: {},
    used,
  });
  undoAfter(t, () => providers[Symbol.dispose]());
  return providers;
}

/** Providers of type qemu, by their memory. */
function qemu(memory: Readonly<Record<string, number>>): Pick<Configuration, 'providers' | 'qemuProviders'> {
  const qemuProviders = Object.entries(memory).map(([name, size]) => ({ name, memory: size }));
  return { providers: [], qemuProviders };
}

describe('the providers of instances', () => {
  it('stay the same over a reload that does not change them', (t) => {
    const providers = open(t);
    providers.configure(qemu({ a: 256, b: 256 }));
    const [a, b, local] = ['a', 'b', 'qemu'].map((name) => providers.instanceProvider(name));
    providers.configure(qemu({ a: 256, b: 512 }));
    assert.equal(providers.instanceProvider('a'), a);
    assert.equal(providers.instanceProvider('qemu'), local);
    assert.notEqual(providers.instanceProvider('b'), b);
  });

  it('are looked at once they have been used, by an earlier process too, as long as they are configured', (t) => {
    const providers = open(t, ['before', 'gone']);
    providers.configure(qemu({ a: 256, before: 256, never: 256 }));
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

  it('that are not there are told of', (t) => {
    const providers = open(t);
    providers.configure(qemu({}));
    assert.throws(() => providers.instanceProvider('cloud'), {
      name: ImageError.name,
      code: 'invalid-configuration',
      message:
        'no provider "cloud" runs machines here; add one of type openstack or qemu to providers and reload',
    });
  });

  it('are remembered by what builds left in them', async (t) => {
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
    assert.deepEqual(await rememberedProviders(repository), ['cloud']);
  });
});

it('the identity of a builder is drawn once for its images-dir', async (t) => {
  const [one, other] = [temporaryDirectory(t), temporaryDirectory(t)];
  for (const directory of [one, other]) await mkdir(join(directory, '.nodepool-builder'));
  const identity = await builderIdentity(one);
  assert.equal(await builderIdentity(one), identity);
  assert.notEqual(await builderIdentity(other), identity);
});
