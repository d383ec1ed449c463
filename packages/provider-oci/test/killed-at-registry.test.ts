// Only in test:all: it kills an upload at each step.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { unlessMissing } from '@nodepool-builder/image-builder/internal';
import { type FaultProxy, startFaultProxy } from '../../../test/fixtures/fault-proxy/fault-proxy.ts';
import { type Fault, losesResponse } from '../../../test/fixtures/fault-proxy/faults.ts';
import type { OciEntry } from '../src/oci-settings.ts';
import { requestFor, writeDisk } from './disk.ts';
import { removeRegistry, startRegistry } from './docker-registry.ts';
import { openProvider } from './oci-fixture.ts';

/** Debian's docker-registry behind a proxy, and a disk to upload. */
interface Fixture {
  readonly proxy: FaultProxy;
  readonly directory: string;
  readonly settings: Partial<OciEntry> & Pick<OciEntry, 'repository'>;
  readonly path: string;
  /** Returns the bytes of each unfinished upload in the registry. */
  readonly sessions: () => Promise<readonly number[]>;
}

async function start(t: TestContext): Promise<Fixture> {
  const directory = await mkdtemp(join(tmpdir(), 'oci-'));
  const registry = await startRegistry(join(directory, 'registry'), 'none');
  t.after(() => removeRegistry(registry, directory));
  const proxy = await startFaultProxy(`http://${registry.host}`);
  t.after(() => proxy[Symbol.asyncDispose]());
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 2);
  const uploads = join(directory, 'registry/data/docker/registry/v2/repositories/ci/images/_uploads');
  const sessions = async (): Promise<readonly number[]> => {
    // A cancelled upload keeps its directory, but not the file with its bytes.
    const names = (await unlessMissing(readdir(uploads))) ?? [];
    const files = names.map(async (name) => await unlessMissing(stat(join(uploads, name, 'data'))));
    return (await Promise.all(files)).flatMap((file) => (file === undefined ? [] : [file.size]));
  };
  // A container image also has a configuration, so that it begins two uploads.
  const settings = {
    repository: `${registry.host}/ci/images`,
    endpoint: proxy.url,
    layout: 'container-disk',
  } as const;
  return { proxy, directory, settings, path, sessions };
}

/** Uploads in a separate process, which is killed at a request. */
async function killAt(fixture: Fixture, [method, nth]: Step, moment: Moment): Promise<void> {
  const { proxy, directory, settings, path } = fixture;
  const program = join(import.meta.dirname, 'killed-upload.ts');
  const args = [...process.execArgv.filter((argument) => !argument.startsWith('--test')), program];
  const child = spawn(
    process.execPath,
    [...args, JSON.stringify({ settings, directory, path, isHashed: true })],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  const ended = once(child, 'exit');
  proxy.inject({ method, nth, path: /blobs\/uploads|manifests/ }, MOMENTS[moment](child));
  assert.deepEqual(await ended, [null, 'SIGKILL']);
  proxy.clear();
}

const MOMENTS = {
  before:
    (child: ChildProcess): Fault =>
    async (exchange) => {
      child.kill('SIGKILL');
      exchange.hangUp();
    },
  within:
    (child: ChildProcess): Fault =>
    async (exchange) => {
      const upstream = await exchange.passBody(300_000);
      child.kill('SIGKILL');
      upstream.destroy();
      exchange.hangUp();
    },
  after:
    (child: ChildProcess): Fault =>
    async (exchange) => {
      const loseResponse = losesResponse()(exchange);
      await loseResponse;
      child.kill('SIGKILL');
    },
} as const;

type Moment = keyof typeof MOMENTS;
type Step = readonly [method: string, nth: number];

const KILLS: readonly (readonly [Step, Moment])[] = [
  [['PATCH', 1], 'before'],
  [['PUT', 1], 'before'],
  [['PUT', 1], 'after'],
  [['POST', 2], 'before'],
  [['PUT', 2], 'before'],
  [['PUT', 2], 'after'],
  [['PUT', 3], 'before'],
];

for (const [step, moment] of KILLS) {
  for (const end of ['upload', 'removal'] as const) {
    test(`docker-registry keeps no unfinished upload after SIGKILL ${moment} ${step.join(' ')} and the ${end}`, async (t) => {
      const fixture = await start(t);
      const { settings, directory, path, sessions } = fixture;
      await killAt(fixture, step, moment);
      const provider = openProvider(settings, directory);
      if (end === 'removal') {
        const [partial] = await provider.listPartialUploads();
        assert.equal(await partial?.remove(), true);
      } else {
        await provider.upload(await requestFor(path));
        assert.equal((await provider.list()).length, 1);
      }
      assert.deepEqual(await provider.listPartialUploads(), []);
      assert.deepEqual(await sessions(), []);
    });
  }
}

/**
 * Kills after which docker-registry keeps an upload with its bytes: its URL is unknown, or represents fewer bytes.
 * The registry neither resumes nor cancels such an upload, but purges it later.
 */
const KEPT: readonly (readonly [Step, Moment, bytes: number])[] = [
  [['POST', 1], 'after', 0],
  [['POST', 2], 'after', 0],
  [['PATCH', 2], 'within', 1_348_576],
  [['PATCH', 2], 'after', 2_097_152],
];

for (const [step, moment, bytes] of KEPT) {
  test(`docker-registry keeps ${bytes} bytes of an upload for its purge after SIGKILL ${moment} ${step.join(' ')}`, async (t) => {
    const fixture = await start(t);
    await killAt(fixture, step, moment);
    const provider = openProvider(fixture.settings, fixture.directory);
    await provider.upload(await requestFor(fixture.path));
    assert.equal((await provider.list()).length, 1);
    assert.deepEqual(await fixture.sessions(), [bytes]);
  });
}
