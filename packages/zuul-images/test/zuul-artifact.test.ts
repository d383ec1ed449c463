import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import type { DiskImage, Image } from '@nodepool-builder/image-builder';
import { NO_SERVICES } from '../../../test/fixtures/builder-services.ts';
import { FakeAttester } from '../../../test/fixtures/fake-attester.ts';
import { RecordingLogger } from '../../../test/fixtures/recording-logger.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { ZuulDouble } from '../../../test/fixtures/zuul/zuul-double.ts';
import { imageBuilderContract } from '../../image-builder/src/testing/image-builder-contract.ts';
import { ZuulArtifactBuilder, type ZuulSettings } from '../src/index.ts';
import {
  ArtifactServer,
  digest,
  idOf,
  imageOf,
  overlayOf,
  SIGNATURE,
  ZuulSite,
} from './zuul-artifact/zuul-site.ts';

/** Bytes that are sent in addition to the content: the first byte, for the plan and for the download. */
const LOOKS = 2;

let server: ArtifactServer;
before(async () => {
  server = await ArtifactServer.start();
});
after(() => server.nginx.stop());

/** Lists the files in the image's state directory. */
async function kept({ repository }: ZuulSite): Promise<readonly string[]> {
  return await readdir(join(repository.directory, '.nodepool-builder', 'state', 'noble')).catch(() => []);
}

describe('the image of a Zuul job', () => {
  for (const version of ['9.5', '11.3'] as const) {
    test(`the imported image is the newest build’s, by the API of Zuul ${version}`, async (t) => {
      const site = await ZuulSite.start(t, server, { version });
      await site.addQcow2('old.qcow2', server.otherQcow2);
      const { uuid, end } = await site.addQcow2('new.qcow2');
      const lines: string[] = [];
      const { repository } = site.repository;
      const { files, builtAt } = await site
        .builder()
        .build({ imageId: 'noble-0000000001', repository, onLine: (line) => lines.push(line) });
      assert.deepEqual(
        files.map(({ format, checksums }) => [format, checksums?.sha256]),
        [['qcow2', digest('sha256', server.qcow2)]],
      );
      assert.deepEqual(await site.sent(), { 'new.qcow2': server.qcow2.length + LOOKS });
      assert.ok(lines.some((line) => line.includes(`build ${uuid} of build-ubuntu-noble-image`)));
      assert.ok(lines.some((line) => line.includes(`/new.qcow2: ${server.qcow2.length} bytes`)));
      assert.ok(!lines.some((line) => line.includes(SIGNATURE)));
      assert.deepEqual(await kept(site), []);
      assert.deepEqual(builtAt, end);
    });
  }

  test('the imported image has its artifact as a material', async (t) => {
    const site = await ZuulSite.start(t, server);
    const artifact = await site.put('image.qcow2', server.qcow2, { type: 'image-qcow' });
    const { uuid } = site.zuul.table().add([artifact]);
    const { repository } = site.repository;
    const attester = new FakeAttester();
    await site.builder({ formats: ['raw'] }).build({ imageId: 'noble-1', repository, attester });
    const [material, ...others] = attester.builds[0]?.materials ?? [];
    assert.deepEqual(others, []);
    assert.deepEqual(material, {
      name: `qcow2 artifact of Zuul build ${uuid}`,
      uri: artifact.url.replace(/\?.*$/, ''),
      digest: { sha256: digest('sha256', server.qcow2) },
      annotations: {
        'build-uuid': uuid,
        job: 'build-ubuntu-noble-image',
        project: 'opendev/system-config',
        pipeline: 'periodic',
        branch: 'master',
        ref: 'refs/heads/master',
        'ref-url': 'https://git.example.com/opendev/system-config',
      },
    });
  });

  test('the imported image has no date in the future, even if Zuul’s clock is ahead', async (t) => {
    const site = await ZuulSite.start(t, server);
    const row = await site.addQcow2();
    row.end = new Date(Date.now() + 86_400_000);
    const { repository } = site.repository;
    const logger = new RecordingLogger();
    const { builtAt } = await site.builder().build({ imageId: 'noble-1', repository, logger });
    assert.ok(builtAt <= new Date(), builtAt.toISOString());
    const warnings = logger.lines.filter((line) => line.startsWith('warn '));
    assert.equal(warnings.length, 1, logger.lines.join('\n'));
    assert.match(warnings[0] ?? '', /image noble-1 has a build time in the future/);
  });

  test('the imported image is unpacked and verified, and only the size of other formats is requested', async (t) => {
    const site = await ZuulSite.start(t, server);
    const packed = zstdCompressSync(server.raw);
    site.zuul.table().add([
      await site.put('image.raw.zst', packed, {
        type: 'image-raw',
        format: 'raw',
        md5sum: digest('md5', server.raw),
      }),
      await site.put('image.tar', Buffer.alloc(10), { type: 'image-tar' }),
    ]);
    const { repository } = site.repository;
    const { files } = await site.builder({ formats: ['raw'] }).build({ imageId: 'noble-1', repository });
    assert.deepEqual(
      files.map(({ format, checksums }) => [format, checksums?.sha256]),
      [['raw', digest('sha256', server.raw)]],
    );
    assert.deepEqual(await site.sent(), { 'image.raw.zst': packed.length + LOOKS, 'image.tar': 1 });
  });

  test('the imported image is converted if that is cheaper than a download', async (t) => {
    const site = await ZuulSite.start(t, server);
    site.zuul
      .table()
      .add([
        await site.put('image.qcow2', server.qcow2, { type: 'image-qcow' }),
        await site.put('image.raw', server.raw, { type: 'image-raw' }),
      ]);
    const { repository } = site.repository;
    const { files } = await site
      .builder({ formats: ['raw', 'vhd'] })
      .build({ imageId: 'noble-1', repository });
    assert.deepEqual(
      files.map(({ format }) => format),
      ['raw', 'vhd'],
    );
    const raw = files.find(({ format }) => format === 'raw');
    assert.equal(raw?.checksums?.sha256, digest('sha256', server.raw));
    assert.deepEqual(await site.sent(), { 'image.qcow2': server.qcow2.length + LOOKS, 'image.raw': 1 });
  });

  test('an import fails in a format that can be neither fetched nor converted', async (t) => {
    const site = await ZuulSite.start(t, server);
    await site.addQcow2();
    const { repository } = site.repository;
    await assert.rejects(
      site.builder({ formats: ['tar'] }).build({ imageId: 'noble-1', repository }),
      withCode('format-unavailable', /returned the image as qcow2, from which tar cannot be made/),
    );
  });
});

describe('an image-id that names a build', () => {
  test('an image id that names a build imports that build', async (t) => {
    const site = await ZuulSite.start(t, server);
    const row = await site.addQcow2('named.qcow2');
    await site.addQcow2('newer.qcow2', server.otherQcow2);
    const { repository } = site.repository;
    const { id } = await site.builder().build({ imageId: idOf(row), repository });
    assert.equal(id, idOf(row));
    assert.deepEqual(Object.keys(await site.sent()), ['named.qcow2']);
  });

  test('an image id that names a build causes an error if Zuul no longer lists the build', async (t) => {
    const site = await ZuulSite.start(t, server);
    const row = await site.addQcow2();
    site.zuul.table().prune(site.zuul.table().tick());
    await site.addQcow2('newer.qcow2', server.otherQcow2);
    const { repository } = site.repository;
    await assert.rejects(
      site.builder().build({ imageId: idOf(row), repository }),
      withCode('build-unknown', new RegExp(row.uuid)),
    );
  });

  test('an image id that names a build causes an error if the build returned no image', async (t) => {
    const site = await ZuulSite.start(t, server);
    const artifact = await site.put('image.qcow2', server.qcow2, { type: 'image-qcow2' });
    const row = site.zuul.table().add([artifact]);
    const { repository } = site.repository;
    const unusable = withCode('build-unusable', /none of its artifacts is the image/);
    await assert.rejects(site.builder().build({ imageId: idOf(row), repository }), unusable);
    await assert.rejects(site.builder().build({ imageId: 'noble-1', repository }), unusable);
  });
});

describe('expired artifacts', () => {
  test('expired artifacts make the importer fetch the previous build, unless the image id names one', async (t) => {
    const site = await ZuulSite.start(t, server);
    await site.addQcow2('old.qcow2', server.otherQcow2);
    const gone = await site.addQcow2('gone.qcow2');
    await server.remove(`${site.folder}/gone.qcow2`);
    const { repository } = site.repository;
    await assert.rejects(
      site.builder().build({ imageId: idOf(gone), repository }),
      withCode('artifact-expired', /gone\.qcow2 no longer exists/),
    );
    await site.builder().build({ imageId: 'noble-1', repository });
    assert.equal((await site.sent())['old.qcow2'], server.otherQcow2.length + LOOKS);
  });

  test('expired artifacts fail the import if no other build has the image', async (t) => {
    const site = await ZuulSite.start(t, server);
    await site.addQcow2();
    await server.remove(`${site.folder}/image.qcow2`);
    const { repository } = site.repository;
    await assert.rejects(
      site.builder().build({ imageId: 'noble-1', repository }),
      withCode('artifact-expired'),
    );
    site.zuul.table().prune(site.zuul.table().tick());
    await assert.rejects(site.builder().build({ imageId: 'noble-1', repository }), withCode('build-unknown'));
  });

  test('an artifact that expires during a download makes the importer fetch the previous build', async (t) => {
    const site = await ZuulSite.start(t, server);
    const tar = execFileSync('tar', ['-c', '-C', import.meta.dirname, 'zuul-artifact.test.ts']);
    const add = async (prefix: string): Promise<string> => {
      const artifacts = [
        await site.put(`${prefix}.qcow2`, server.qcow2, { type: 'image-qcow' }),
        await site.put(`${prefix}.tar`, tar, { type: 'image-tar' }),
      ];
      return site.zuul.table().add(artifacts).uuid;
    };
    const older = await add('old');
    await add('new');
    const expired = join(server.nginx.directory, site.folder, 'new.tar');
    const onLine = (line: string): void => {
      if (/downloading .*new\.qcow2/.test(line)) rmSync(expired);
    };
    const { repository } = site.repository;
    const attester = new FakeAttester();
    const builder = site.builder({ formats: ['qcow2', 'tar'] });
    await builder.build({ imageId: 'noble-1', repository, attester, onLine });
    assert.equal((await site.sent())['new.qcow2'], server.qcow2.length + LOOKS);
    assert.deepEqual(
      attester.builds[0]?.materials?.map(({ name }) => name),
      [`qcow2 artifact of Zuul build ${older}`, `tar artifact of Zuul build ${older}`],
    );
  });

  test('expired artifacts are replaced by conversions', async (t) => {
    const site = await ZuulSite.start(t, server);
    const row = site.zuul
      .table()
      .add([
        await site.put('image.qcow2', server.qcow2, { type: 'image-qcow' }),
        await site.put('image.raw', server.raw, { type: 'image-raw' }),
      ]);
    await server.remove(`${site.folder}/image.qcow2`);
    const { repository } = site.repository;
    await site.builder().build({ imageId: idOf(row), repository });
    assert.equal((await site.sent())['image.raw'], server.raw.length + LOOKS);
  });
});

describe('an unusable artifact', () => {
  const CASES = [
    ['has another digest', () => Buffer.concat([server.qcow2, Buffer.alloc(1)]), /its sha256 is/],
    ['is of another format', () => Buffer.alloc(70_000, 'no image'), /is not a usable qcow2 image/],
    ['refers to a file of this host', () => overlayOf('/etc/passwd'), /names another file, "\/etc\/passwd"/],
    ['is empty', () => Buffer.alloc(0), /image\.qcow2 is empty/],
  ] as const;
  test('an artifact is rejected if its URL leads to a link-local service', async (t) => {
    const site = await ZuulSite.start(t, server);
    const artifact = await site.put('image.qcow2', server.qcow2, { type: 'image-qcow' });
    const row = site.zuul.table().add([{ ...artifact, url: 'http://169.254.169.254/image.qcow2' }]);
    const { repository } = site.repository;
    await assert.rejects(
      site.builder().build({ imageId: idOf(row), repository }),
      withCode('artifact-refused', /169\.254\.169\.254 is a link-local address/),
    );
  });

  test('an artifact is rejected without a sha256 if require-sha256 is set', async (t) => {
    const site = await ZuulSite.start(t, server);
    const row = site.zuul.table().add([await site.put('image.qcow2', server.qcow2, { type: 'image-qcow' })]);
    const { repository } = site.repository;
    const zuul = { 'require-sha256': true };
    await assert.rejects(
      site.builder({}, zuul).build({ imageId: idOf(row), repository }),
      withCode('build-unusable', /its qcow2 artifact has no sha256 in its metadata, and require-sha256/),
    );
    const sha256 = digest('sha256', server.qcow2);
    const next = site.zuul
      .table()
      .add([await site.put('image.qcow2', server.qcow2, { type: 'image-qcow', sha256 })]);
    await site.builder({}, zuul).build({ imageId: idOf(next), repository });
  });

  test('an artifact is rejected if its disk is above the size limit, even if its file is small', async (t) => {
    const site = await ZuulSite.start(t, server);
    const row = site.zuul.table().add([await site.put('image.qcow2', server.qcow2, { type: 'image-qcow' })]);
    const { repository } = site.repository;
    await assert.rejects(
      site.builder().build({ imageId: idOf(row), repository, maxDiskSize: 2 ** 22 - 1 }),
      withCode('artifact-too-large'),
    );
  });

  for (const [what, contentOf, message] of CASES) {
    test(`an artifact is rejected if it ${what}`, async (t) => {
      const site = await ZuulSite.start(t, server);
      const content = contentOf();
      const sha256 = digest('sha256', content.subarray(0, server.qcow2.length));
      const row = site.zuul
        .table()
        .add([await site.put('image.qcow2', content, { type: 'image-qcow', sha256 })]);
      const { repository } = site.repository;
      await assert.rejects(
        site.builder().build({ imageId: idOf(row), repository }),
        withCode('artifact-damaged', message),
      );
      assert.deepEqual(await kept(site), []);
      assert.equal(repository.images.size, 0);
    });
  }
});

test('a downloaded artifact is kept if the build fails later, and not fetched again', async (t) => {
  const site = await ZuulSite.start(t, server);
  const row = await site.addQcow2();
  const { repository } = site.repository;
  const failing = site.builder({ validation: { hook: ['false'] } });
  await assert.rejects(failing.build({ imageId: idOf(row), repository }), withCode('validation-failed'));
  assert.deepEqual(await kept(site), [row.uuid]);
  const { files } = await site.builder().build({ imageId: idOf(row), repository });
  assert.deepEqual(await site.sent(), { 'image.qcow2': server.qcow2.length + LOOKS });
  assert.ok((await readFile(files[0]?.path ?? '')).equals(server.qcow2));
  assert.deepEqual(await kept(site), []);
});

test('a kept artifact is not mistaken for another one', async (t) => {
  const site = await ZuulSite.start(t, server);
  const raw = randomBytes(2 ** 20);
  const row = site.zuul
    .table()
    .add([
      await site.put('wrong.qcow2', server.otherQcow2, { type: 'image-qcow' }),
      await site.put('image.raw', raw, { type: 'image-raw' }),
      await site.put('image.qcow2', server.qcow2, { type: 'image-right' }),
    ]);
  const { repository } = site.repository;
  const build = async (artifacts: ZuulSettings['artifacts'], ...hook: string[]): Promise<Image> => {
    return await site
      .builder({ validation: { hook } }, { artifacts })
      .build({ imageId: idOf(row), repository });
  };
  const failed = withCode('validation-failed');
  await assert.rejects(build([{ format: 'qcow2', type: 'image-qcow' }], 'false'), failed);
  await assert.rejects(build([{ format: 'raw', type: 'image-raw' }], 'false'), failed);
  const { files } = await build([{ format: 'qcow2', type: 'image-right' }], 'true');
  assert.equal(files[0]?.checksums?.sha256, digest('sha256', server.qcow2));
  assert.equal((await site.sent())['image.raw'], raw.length + LOOKS);
});

test('a partial download of an artifact is kept if the build is aborted', async (t) => {
  const site = await ZuulSite.start(t, server);
  const row = await site.addQcow2();
  const { repository } = site.repository;
  const abort = new AbortController();
  const onLine = (line: string): void => {
    if (line.startsWith('downloading')) abort.abort();
  };
  await assert.rejects(
    site.builder().build({ imageId: idOf(row), repository, signal: abort.signal, onLine }),
    withCode('build-aborted'),
  );
  assert.deepEqual(await kept(site), [row.uuid]);
});

test('an artifact that was changed after the download is fetched again', async (t) => {
  const site = await ZuulSite.start(t, server);
  const row = await site.addQcow2();
  const { repository } = site.repository;
  const changing = site.builder({ validation: { hook: ['sh', '-c', 'echo changed >> "$1"; false', 'sh'] } });
  await assert.rejects(changing.build({ imageId: idOf(row), repository }), withCode('validation-failed'));
  const { files } = await site.builder().build({ imageId: idOf(row), repository });
  assert.equal(files[0]?.checksums?.sha256, digest('sha256', server.qcow2));
});

test('a download of an artifact is resumed after SIGKILL', async (t) => {
  const site = await ZuulSite.start(t, server);
  const content = randomBytes(24 * 2 ** 20);
  const artifact = await site.put('image.raw', content, {
    type: 'image-raw',
    sha256: digest('sha256', content),
  });
  const imageId = idOf(site.zuul.table().add([artifact]));
  const { repository: fixture } = site;
  await fixture.close();
  const diskimage: DiskImage = { name: 'noble', formats: ['raw'] };
  const victim = join(import.meta.dirname, 'zuul-artifact', 'zuul-artifact-victim.ts');
  const args = [
    ...process.execArgv,
    victim,
    JSON.stringify([diskimage, site.image]),
    fixture.directory,
    imageId,
    '60',
  ];
  assert.deepEqual(await once(spawn(process.execPath, args, { stdio: 'inherit' }), 'exit'), [
    null,
    'SIGKILL',
  ]);
  const sentFirst = (await site.sent())['image.raw'] ?? 0;
  assert.ok(sentFirst > content.length / 2, `${sentFirst} bytes were sent`);
  const repository = await fixture.open();
  const { files } = await new ZuulArtifactBuilder(diskimage, site.image, NO_SERVICES).build({
    imageId,
    repository,
  });
  assert.equal(files[0]?.checksums?.sha256, digest('sha256', content));
  const sent = (await site.sent())['image.raw'] ?? 0;
  assert.ok(sent < 1.1 * content.length, `${sent} bytes were sent of ${content.length}`);
});

test('errors distinguish a Zuul server that is unavailable from one that rejects the request', async (t) => {
  const site = await ZuulSite.start(t, server);
  const { repository } = site.repository;
  for (const [faults, code] of [
    [['unavailable-for-long'], 'source-unavailable'],
    [['bad-request', 'bad-request'], 'source-refused'], // also for a smaller page
  ] as const) {
    site.zuul.fail(...faults);
    await assert.rejects(
      site.builder().build({ imageId: 'noble-1', repository }),
      withCode(code, /^Zuul API http/),
    );
  }
});

describe('the contract of all builders', () => {
  let zuul: ZuulDouble;
  before(async () => {
    zuul = await ZuulDouble.start();
    zuul.table().add([await server.put('contract/image.qcow2', server.qcow2, { type: 'image-qcow' })]);
  });
  after(() => zuul[Symbol.asyncDispose]());

  imageBuilderContract(
    'ZuulArtifactBuilder',
    (diskimage) => new ZuulArtifactBuilder(diskimage, imageOf(zuul), NO_SERVICES),
    ['qcow2', 'raw'],
  );
});
