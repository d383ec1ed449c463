import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { ImageError, type ImageErrorCode } from '../errors.ts';
import type {
  Instance,
  InstanceAddress,
  InstanceProvider,
  LaunchRequest,
  Probe,
} from '../instance/instance-provider.ts';

/** A provider and its instances. */
export interface InstanceSite {
  /** Opens a provider without instances of other tests. A second call represents a later process. */
  readonly open: () => InstanceProvider;
  /** Base image whose system responds to {@link probe}, writes to its console, and reacts to the power button. */
  readonly request: Omit<LaunchRequest, 'buildId'>;
  readonly probe: Probe;
  /** Runs a command line on the instance and returns its output. */
  readonly run: (address: InstanceAddress, command: string) => Promise<string>;
}

const never: Probe = () => Promise.reject(new Error('not yet'));

/**
 * Registers the tests that every {@link InstanceProvider} passes.
 *
 * @param name name of the test suite
 * @param openSite prepares a site for one test, with its cleanup in `t.after`
 */
export function instanceProviderContract(
  name: string,
  openSite: (t: TestContext) => Promise<InstanceSite>,
): void {
  describe(`${name} as an InstanceProvider`, () => {
    test('a captured image contains the changes on the instance', async (t) => {
      const { open, request, probe, run } = await openSite(t);
      const launched = await open().launch({ ...request, buildId: 'debian-0000000001' });
      const address = await launched.waitReachable(probe);
      assert.deepEqual(await launched.address(), address);
      assert.notEqual((await launched.consoleLog()).trim(), '');
      await run(address, 'echo changed > /root/mark; sync');
      await assert.rejects(launched.capture({ imageId: 'debian-0000000001' }), withCode('instance-failed'));

      // Simulates a process after one that was killed.
      const instance = await onlyInstance(open());
      assert.equal(instance.id, launched.id);
      assert.equal(instance.buildId, 'debian-0000000001');
      assert.equal(instance.launchedAt.getTime(), launched.launchedAt.getTime());
      assert.equal(await instance.state(), 'running');
      assert.deepEqual(await instance.waitReachable(probe), address);
      await instance.stop();
      assert.equal(await instance.state(), 'stopped');
      assert.equal(await launched.state(), 'stopped');
      await instance.stop();
      const captured = await instance.capture({ imageId: 'debian-0000000001' });
      const [format] = captured.formats;
      assert.ok(format !== undefined);
      const path = join(await temporaryDirectory(t), 'captured');
      await captured.save(format, path);
      await instance.destroy();

      const provider = open();
      const { externalId } = captured;
      const stored = (await provider.captures?.()) ?? [];
      assert.deepEqual(
        stored.map((capture) => [capture.externalId, capture.imageId]),
        externalId === undefined ? [] : [[externalId, 'debian-0000000001']],
      );
      const image = externalId ?? path;
      const again = await provider.launch({ ...request, image, format, buildId: 'debian-0000000002' });
      const off = again.waitStopped();
      const there = await again.waitReachable(probe);
      assert.equal(await run(there, 'cat /root/mark'), 'changed\n');
      await run(there, 'poweroff').catch(() => {}); // the connection may break before the command reports that it has started
      await off;
      assert.equal(await again.state(), 'stopped');
      await again.destroy();
      assert.deepEqual(await provider.list(), []);
      for (const capture of stored) await capture.discard();
      assert.deepEqual((await provider.captures?.()) ?? [], []);
    });

    test('instances for several builds are separate, and are destroyed in any state', async (t) => {
      const { open, request } = await openSite(t);
      const provider = open();
      const [one, other] = await Promise.all(
        ['one', 'other'].map((buildId) => provider.launch({ ...request, buildId })),
      );
      assert.ok(one !== undefined && other !== undefined);
      assert.notEqual(one.id, other.id);
      assert.deepEqual((await provider.list()).map(({ buildId }) => buildId).toSorted(), ['one', 'other']);
      await one.destroy();
      assert.equal((await onlyInstance(provider)).id, other.id);
      await one.destroy();
      assert.equal(await one.state(), 'failed');
      await assert.rejects(one.waitStopped(), withCode('instance-failed'));
      await assert.rejects(one.stop(), withCode('instance-failed'));
      await (await onlyInstance(open())).destroy();
      assert.deepEqual(await provider.list(), []);
      await other.destroy();
    });

    test('an aborted wait does not end the instance', async (t) => {
      const { open, request } = await openSite(t);
      const instance = await open().launch({ ...request, buildId: 'debian-0000000001' });
      const reason = new ImageError('build-aborted', 'enough');
      const abort = new AbortController();
      const { signal } = abort;
      const waits = [
        assert.rejects(instance.waitReachable(never, { signal }), reason),
        assert.rejects(instance.waitStopped({ signal }), reason),
      ];
      abort.abort(reason);
      await Promise.all(waits);
      for (const call of ['state', 'address', 'consoleLog', 'stop', 'waitStopped'] as const) {
        await assert.rejects(instance[call]({ signal }), reason, call);
      }
      assert.equal(await instance.state(), 'running');
      await instance.destroy();
    });

    test('an aborted launch leaves nothing', async (t) => {
      const { open, request } = await openSite(t);
      const provider = open();
      const reason = new ImageError('build-aborted', 'enough');
      const launch = (signal: AbortSignal): Promise<Instance> =>
        provider.launch({ ...request, buildId: 'debian-0000000001' }, { signal });
      await assert.rejects(launch(AbortSignal.abort(reason)), reason);
      const abort = new AbortController();
      const launched = launch(abort.signal);
      abort.abort(reason);
      await assert.rejects(launched, reason);
      assert.deepEqual(await provider.list(), []);
    });

    test('a launch from a missing image fails and leaves nothing', async (t) => {
      const { open, request } = await openSite(t);
      const provider = open();
      const image = request.image.replace(/(?<![^/])[^/]+$/, 'absent-$&');
      const launched = provider.launch({ ...request, image, buildId: 'debian-0000000001' });
      await assert.rejects(launched, withCode('image-not-found'));
      assert.deepEqual(await provider.list(), []);
    });
  });
}

async function onlyInstance(provider: InstanceProvider): Promise<Instance> {
  const [instance, ...others] = await provider.list();
  assert.ok(instance !== undefined);
  assert.deepEqual(others, []);
  return instance;
}

async function temporaryDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'captured-'));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}

function withCode(code: ImageErrorCode): (error: unknown) => boolean {
  return (error) => error instanceof ImageError && error.code === code;
}
