import assert from 'node:assert/strict';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { Admin } from '@nodepool-builder/gearman-node';
import type { BuilderProcess } from '../fixtures/builder-process.ts';
import { type CompatSite, createCompatSite } from '../fixtures/compat-site.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { NodepoolClient } from '../fixtures/nodepool-client.ts';
import { setUp } from '../fixtures/set-up.ts';
import { type StatsdListener, startStatsdListener } from '../fixtures/statsd-listener.ts';

const DISKIMAGES = `
  - {name: two-types, elements: [debian-minimal, vm]}
  - {name: no-provider}
  - {name: talks, elements: 'talk "with space"'}
  - {name: overrides, release: trusty, env-vars: {DIB_RELEASE: precise, DIB_IMAGE_NAME: mine, EMPTY: ''}}
  - {name: base, abstract: true, elements: [debian-minimal], formats: [qcow2], qemu-img-options: compat=1.1}
  - {name: child, parent: base, elements: [vm], release: trixie, env-vars: {DIB_IMAGE_NAME: child}}
  - {name: ../../evil}
  - {name: a/b}
  - {name: -x}
  - {name: ${'n'.repeat(300)}}
  - {name: fails, elements: [fail]}
  - {name: fake-image, elements: [vm]}`;

const PROVIDERS = `
  - {name: raw, type: directory, directory: pool, image-type: raw, images: [{name: a, diskimage: two-types}]}
  - {name: qcow2, type: directory, directory: pool, image-type: qcow2, images: [{name: b, diskimage: two-types}, {name: c, diskimage: two-types}]}`;

describe('disk-image-create', () => {
  let server: Gearmand;
  let statsd: StatsdListener;
  let site: CompatSite;
  let builder: BuilderProcess;
  let client: NodepoolClient;

  setUp(async (undo) => {
    server = await startGearmand();
    undo(() => server.stop());
    statsd = await startStatsdListener();
    undo(() => statsd.close());
    site = await createCompatSite(server.port, { diskimages: DISKIMAGES, providers: PROVIDERS });
    undo(() => site.remove());
    builder = await site.start({
      DIB_INHERITED: 'from the init script',
      http_proxy: 'http://proxy.example:3128',
      MIRROR: 'https://mirror.example',
      OS_PASSWORD: 'correct-horse',
      STATSD_HOST: '127.0.0.1',
      STATSD_PORT: String(statsd.port),
    });
    undo(() => builder.end('SIGINT'));
    client = await NodepoolClient.connect(server.port);
    undo(() => client.close());
  });

  /** Returns its arguments, with the value of -o separately. */
  async function argv(): Promise<{ args: string[]; output: string }> {
    const args = await site.dib.argv();
    const index = args.indexOf('-o') + 1;
    return { output: args[index] ?? '', args: args.toSpliced(index, 1) };
  }

  it('disk-image-create gets its arguments in nodepool’s order (COMPAT 1.9)', async () => {
    await client.build('debian', '1');
    const { args, output } = await argv();
    assert.deepEqual(args, ['-x', '-t', 'raw', '--no-tmpfs', '-o', 'debian-minimal', 'vm']);
    assert.equal(basename(output), '1');
    assert.ok(
      dirname(output).startsWith(join(site.images, '.nodepool-builder')),
      'mended: not in images-dir itself',
    );
  });

  it('disk-image-create makes each of the providers’ types once, with the option for qcow2 (COMPAT 1.9)', async () => {
    await client.build('two-types', '2');
    const { args } = await argv();
    const qcow2 = ['--qemu-img-options', 'compat=0.10'];
    assert.deepEqual(args, ['-x', '-t', 'raw,qcow2', '--no-tmpfs', ...qcow2, '-o', 'debian-minimal', 'vm']);
  });

  it('disk-image-create makes qcow2 without a provider, and gets all options (COMPAT 1.9, mended)', async () => {
    await client.build('no-provider', '3');
    const { args } = await argv();
    assert.deepEqual(args, ['-x', '-t', 'qcow2', '--no-tmpfs', '--qemu-img-options', 'compat=0.10', '-o']);
  });

  it('disk-image-create gets quoted elements with a space, and "fake-" in a name has no effect (COMPAT 1.9, mended)', async () => {
    await client.build('talks', '4');
    assert.deepEqual((await argv()).args.slice(-2), ['talk', 'with space']);
    assert.equal((await client.build('fake-image', '5')).end, 'WORK_COMPLETE');
    assert.equal((await argv()).args.at(-1), 'vm');
  });

  it('disk-image-create builds a child with its parent’s settings, and never an abstract parent', async () => {
    await client.build('child', 'child-1');
    const { args } = await argv();
    const options = ['--no-tmpfs', '--qemu-img-options', 'compat=1.1'];
    assert.deepEqual(args, ['-x', '-t', 'qcow2', ...options, '-o', 'debian-minimal', 'vm']);
    const admin = new Admin({ host: '127.0.0.1', port: server.port });
    const offered = (await admin.status()).map(({ name }) => name);
    await admin.close();
    assert.ok(offered.includes('image-build:child'));
    assert.ok(!offered.includes('image-build:base'));
  });

  for (const name of ['../../evil', 'a/b', '-x', 'n'.repeat(300)]) {
    it(`disk-image-create builds a disk image named "${name.slice(0, 10)}" under a number (COMPAT 1.10)`, async () => {
      const id = `named-${name.length}`;
      const { end } = await client.build(name, id);
      assert.equal(end, 'WORK_COMPLETE');
      assert.equal((await site.dib.environment()).get('DIB_IMAGE_NAME'), name);
      await client.delete(id);
    });
  }

  it('disk-image-create gets the inherited environment, nodepool’s own variables, and env-vars (COMPAT 1.9)', async () => {
    await client.build('debian', '6');
    const environment = await site.dib.environment();
    const { output } = await argv();
    const own = [...environment].filter(([name]) => !(name in process.env) && !STATSD.test(name));
    // The double's shell adds PWD. The private TMPDIR and TMP_DIR, the cache and the marker are intended differences
    // (marked as mended).
    const added = new Set(['PWD', 'OLDPWD', '_', 'TMP_DIR', 'DIB_IMAGE_CACHE', 'NODEPOOL_BUILD_DIRECTORY']);
    assert.deepEqual(Object.fromEntries(own.filter(([name]) => !added.has(name))), {
      DIB_INHERITED: 'from the init script',
      http_proxy: 'http://proxy.example:3128',
      DIB_RELEASE: '8',
      DIB_IMAGE_NAME: 'debian',
      DIB_IMAGE_FILENAME: output,
      ELEMENTS_PATH: '/etc/nodepool/elements',
      NODEPOOL_SCRIPTDIR: '/etc/nodepool/scripts',
      DIB_CHECKSUM: '1',
      TMPDIR: environment.get('TMP_DIR'),
    });
    assert.equal(
      dirname(environment.get('TMPDIR') ?? ''),
      tmpdir(),
      'mended: a directory of the build below it',
    );
  });

  it('env-vars override all other variables, and a missing release is empty (COMPAT 1.9)', async () => {
    await client.build('overrides', '7');
    const environment = await site.dib.environment();
    assert.deepEqual(
      ['DIB_RELEASE', 'DIB_IMAGE_NAME', 'EMPTY'].map((name) => environment.get(name)),
      ['precise', 'mine', ''],
    );
    await client.build('no-provider', '8');
    assert.equal((await site.dib.environment()).get('DIB_RELEASE'), '');
  });

  it('each line of output, and a final empty one, is logged as nodepool.image.build.<diskimage> (COMPAT 1.1)', async () => {
    await client.build('talks', '9');
    await builder.logged(/build 9 of talks \(job .*\): done/); // the job's result may arrive before the log line
    const mark = / INFO nodepool\.image\.build\.talks: /;
    const records = builder.log.filter((line) => mark.test(line)).map((line) => line.split(mark)[1]);
    assert.ok(records.includes('to stdout') && records.includes('to stderr'), String(records));
    assert.equal(records.at(-1), '');
  });

  it('a log is written for each build (COMPAT 4)', async () => {
    await client.build('talks', '12');
    const log = await readFile(join(site.images, '.nodepool-builder/logs/12.log'), 'utf8');
    assert.match(log, /^ {2}to stdout {2}$/m);
  });

  it('a build writes <images-dir>/<id>.<type>, with a manifest next to it (COMPAT 1.8)', async () => {
    await client.build('two-types', '13');
    await Promise.all(
      ['13.raw', '13.qcow2', '13.d/dib-manifest'].map((name) => stat(join(site.images, name))),
    );
  });

  it('an earlier builder’s files are images, and files from a dead build are not (COMPAT 1.8)', async () => {
    await writeFile(join(site.images, '0000000042.raw'), 'x');
    await mkdir(join(site.images, '0000000042.d'));
    const upload = await client.upload('0000000042', 'pool', 'trusty');
    assert.equal(upload.data, '{"external-id": "trusty-0000000042.raw"}');
  });

  it('a successful build sends its statsd metrics (COMPAT 1.12)', async () => {
    await client.build('two-types', '10');
    await statsd.received(/^nodepool\.dib_image_build\.two-types\.status\.last_build:\d{10}\|g$/);
    const metrics = statsd.metrics.filter((metric) =>
      metric.startsWith('nodepool.dib_image_build.two-types'),
    );
    const size = async (name: string): Promise<number> => (await stat(join(site.images, name))).blocks * 512;
    assert.ok(metrics.includes(`nodepool.dib_image_build.two-types.raw.size:${await size('10.raw')}|g`));
    assert.ok(metrics.includes(`nodepool.dib_image_build.two-types.qcow2.size:${await size('10.qcow2')}|g`));
    assert.ok(metrics.includes('nodepool.dib_image_build.two-types:1|c'));
    assert.ok(
      metrics.some((metric) => /^nodepool\.dib_image_build\.two-types:\d+\.000000\|ms$/.test(metric)),
    );
    assert.ok(metrics.includes('nodepool.dib_image_build.two-types.status.rc:0|g'));
  });

  it('a failed build sends only the statsd metrics in section 4 (COMPAT 1.12)', async () => {
    await client.build('fails', '11');
    await statsd.received(/^nodepool\.dib_image_build\.fails\.status\.last_build:/);
    const keys = statsd.metrics
      .filter((metric) => metric.includes('.fails'))
      .map((metric) => metric.split(':')[0]);
    assert.deepEqual(
      new Set(keys),
      new Set(['rc', 'duration', 'last_build'].map((key) => `nodepool.dib_image_build.fails.status.${key}`)),
    );
    assert.ok(statsd.metrics.includes('nodepool.dib_image_build.fails.status.rc:3|g'));
  });

  it('an upload sends its statsd metrics (COMPAT 1.12)', async () => {
    await client.build('debian', '14');
    await client.upload('14', 'pool', 'trusty');
    assert.match(
      await statsd.received(/^nodepool\.image_update\..*\|ms$/),
      /^nodepool\.image_update\.trusty\.pool:\d+\.000000\|ms$/,
    );
    assert.equal(
      await statsd.received(/^nodepool\.image_update\..*\|c$/),
      'nodepool.image_update.trusty.pool:1|c',
    );
  });
});

/** The environment also contains the address of the statsd server. */
const STATSD = /^STATSD_/;
