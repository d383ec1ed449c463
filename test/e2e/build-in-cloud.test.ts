// Only in test:all: it uses another instance provider.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { OpenStackInstanceProvider } from '@nodepool-builder/provider-openstack';
import { SILENT } from '../../packages/provider-openstack/test/fixtures/silent-logger.ts';
import { createImage, PUBLIC_KEY } from '../../packages/provider-openstack/test/instance/instance-cloud.ts';
import { openRealCloud } from '../../packages/provider-openstack/test/real-cloud.ts';
import { NovaDouble } from '../doubles/openstack/nova-double.ts';
import { sshdMachines } from '../doubles/sshd-machine.ts';
import { type BuilderProcess, programCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import { cloudsYaml } from '../fixtures/openstack/account.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

const PROGRAM = join(import.meta.dirname, '../fixtures/ssh-at-port-program.ts');

/** A real Keystone and Glance with a Nova double, and a job that builds on instances there. */
interface CloudJob {
  readonly nova: NovaDouble;
  /** Directory of the job. */
  readonly output: string;
  /** Starts a command. */
  readonly start: (...args: readonly string[]) => BuilderProcess;
  /** Runs a command to its end. Returns its exit code and standard error. */
  readonly run: (...args: readonly string[]) => Promise<readonly [code: unknown, log: readonly string[]]>;
  /** Opens the cloud for another instance owner. */
  readonly open: (owner: string, scope?: string) => OpenStackInstanceProvider;
  /** Lists the ids of the images in Glance, without the base image. */
  readonly images: () => Promise<readonly string[]>;
}

function diskImage(name: string, step: string): string {
  const settings = `{provider: cloud, base-image: base, steps: ["${step}"]}`;
  return `{name: ${name}, builder: on-instance, formats: [raw], on-instance: ${settings}}`;
}

async function createCloudJob(t: TestContext): Promise<CloudJob> {
  const directory = await mkdtemp(join(tmpdir(), 'build-in-cloud-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const output = join(directory, 'output');
  await mkdir(output);
  const { account, settings } = await openRealCloud(t);
  const nova = await NovaDouble.start(account.imageUrl, sshdMachines(directory));
  undoAfter(t, () => nova[Symbol.asyncDispose]());
  const base = await createImage(account, 'base');
  const clouds = join(directory, 'clouds.yaml');
  const overrides = { compute_endpoint_override: nova.endpoint, network_endpoint_override: nova.endpoint };
  await writeFile(clouds, cloudsYaml({ mycloud: { ...account.cloud(), ...overrides } }));
  const config = join(directory, 'nodepool.yaml');
  await writeFile(
    config,
    `images-dir: /nonexistent
diskimages:
  - ${diskImage('debian', 'echo made > /etc/made')}
  - ${diskImage('waits', 'echo it waits; sleep 3600')}
providers:
  - {name: cloud, cloud: mycloud, image-type: raw, rate: 0, images: []}
`,
  );
  const start = (...args: readonly string[]): BuilderProcess => {
    const [command, all] = programCommand(PROGRAM, ...args, '-c', config);
    const variables = [`OS_CLIENT_CONFIG_FILE=${clouds}`, `SSH_PORT=${nova.port}`];
    const started = spawnDaemon(['env', [...variables, command, ...all]]);
    undoAfter(t, () => (started.child.exitCode === null ? started.end('SIGKILL') : undefined));
    return started;
  };
  return {
    nova,
    output,
    start,
    run: async (...args) => {
      const { ended, log } = start(...args);
      return [await ended, log];
    },
    open: (owner, scope) => {
      const service = { interface: 'public', endpointOverride: nova.endpoint };
      const provider = new OpenStackInstanceProvider({
        name: 'cloud',
        owner,
        ...(scope !== undefined && { scope }),
        settings: async () => ({
          ...settings,
          compute: { ...service, type: 'compute' },
          network: { ...service, type: 'network' },
        }),
        logger: SILENT,
      });
      undoAfter(t, () => provider.close());
      return provider;
    },
    images: async () => (await account.images()).map(({ id }) => id).filter((id) => id !== base),
  };
}

test('the command build downloads an image from the cloud, and leaves no server, key pair or snapshot there', async (t) => {
  const { nova, output, start, run, images } = await createCloudJob(t);
  const json = join(output, 'build.json');
  const build = ['--output', output, '--json-file', json];
  const [code, log] = await run('build', 'debian', ...build, '--image-id', 'made');
  assert.equal(code, 0, log.join('\n'));
  const { files } = JSON.parse(await readFile(json, 'utf8'));
  const disk = JSON.parse(await readFile(files[0].file, 'utf8'));
  assert.equal(disk['/etc/made'], 'made\n');

  const stopped = start('build', 'waits', ...build, '--image-id', 'stopped', '--verbose');
  await stopped.logged(/it waits$/);
  assert.equal(nova.servers.size, 1);
  assert.equal(await stopped.end('SIGTERM'), 6);
  assert.equal(stopped.log.at(-1), 'nodepool-builder: stopped by SIGTERM');

  assert.deepEqual([nova.servers.size, nova.keyPairs.size, await images()], [0, 0, []]);
  const hidden = (await readdir(output)).filter((name) => name.startsWith('.'));
  assert.deepEqual(hidden, []);
});

test('the command reap removes killed jobs’ instances and snapshots, but no younger ones and none of a daemon', async (t) => {
  const { nova, output, start, run, open, images } = await createCloudJob(t);
  const request = { image: 'base', publicKey: PUBLIC_KEY, port: 22 };
  const daemon = open(randomUUID());
  const theirs = await daemon.launch({ ...request, buildId: 'of-a-daemon' });
  const job = open('ci-job', '0123');
  const captured = await job.launch({ ...request, buildId: 'captured' });
  await captured.stop();
  const { externalId } = await captured.capture({ imageId: 'captured' });
  await captured.destroy();

  const killed = start('build', 'waits', '--output', output, '--image-id', 'killed', '--verbose');
  await killed.logged(/it waits$/);
  await killed.end('SIGKILL');
  assert.equal(nova.servers.size, 2);

  const report = join(output, 'reap.json');
  const reap = async (...args: readonly string[]): Promise<readonly Record<string, unknown>[]> => {
    const [code, log] = await run('reap', '--provider', 'cloud', '--json-file', report, ...args);
    assert.equal(code, 0, log.join('\n'));
    return JSON.parse(await readFile(report, 'utf8'));
  };
  assert.deepEqual(await reap(), [], 'a job may still run');
  const planned = await reap('--older-than', '0s', '--dry-run');
  assert.deepEqual(
    planned.map(({ action }) => action),
    ['would delete', 'would delete'],
  );
  assert.match(String(planned[0]?.subject), /^instance \S+ of build killed$/);
  assert.equal(planned[1]?.subject, `snapshot ${externalId} of build captured`);
  assert.equal(nova.servers.size, 2);

  const removed = await reap('--older-than', '0s');
  assert.deepEqual(
    removed.map(({ action, subject }) => [action, subject]),
    planned.map(({ subject }) => ['deleted', subject]),
  );
  assert.deepEqual([...nova.servers.keys()], [theirs.id]);
  assert.deepEqual([nova.keyPairs.size, await images()], [1, []]);
  assert.deepEqual(await reap('--older-than', '0s'), []);
});
