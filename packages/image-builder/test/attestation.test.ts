import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { FakeAttester } from '../../../test/fixtures/fake-attester.ts';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { mountTmpfs } from '../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { checkAttestationName, readAttestation } from '../src/attestation.ts';
import type { FullBuildContext } from '../src/context.ts';
import type { DiskImage } from '../src/index.ts';
import { readManifest } from '../src/manifest.ts';
import { Layout } from '../src/repository/layout.ts';
import { makeImage, ScriptedBuilder } from './scripted-builder.ts';

/** A repository, and a builder of a raw image that can be converted. */
async function setUp(
  t: TestContext,
  script: (context: FullBuildContext) => Promise<void> = makeDisk,
  diskimage: Partial<DiskImage> = {},
): Promise<{ fixture: RepositoryFixture; attester: FakeAttester; build: () => Promise<unknown> }> {
  const fixture = await RepositoryFixture.open(t);
  const attester = new FakeAttester();
  const builder = new ScriptedBuilder(script, diskimage);
  const build = () => builder.build({ imageId: 'a', repository: fixture.repository, attester });
  return { fixture, attester, build };
}

async function makeDisk({ outputPath, run }: FullBuildContext): Promise<void> {
  await run('truncate', ['-s', '1M', outputPath('raw')]);
}

/** Checks that the image is missing, and that the next build succeeds. */
async function assertNothing({ directory, repository }: RepositoryFixture): Promise<void> {
  assert.equal(repository.get('a'), undefined);
  assert.deepEqual(await readdir(directory), ['.nodepool-builder']);
}

test('any builder’s image is published and deleted together with its documents', async (t) => {
  const { fixture, attester, build } = await setUp(t);
  await build();
  const document = fixture.path('a.d/attestations/build.sigstore.json');
  assert.equal(await readFile(document, 'utf8'), '{"about": "the build"}');
  assert.equal((await stat(document)).mode & 0o777, 0o644);
  assert.deepEqual((await readdir(fixture.directory)).toSorted(), ['.nodepool-builder', 'a.d', 'a.raw']);
  const [{ manifest } = assert.fail()] = attester.builds;
  const layout = new Layout(fixture.directory);
  assert.deepEqual(await readManifest(layout.manifest('a'), 'a'), manifest);
  await fixture.repository.delete('a');
  await assertNothing(fixture);
});

test('materials are passed to the attester once, without credentials and secrets', async (t) => {
  const secret = 'hunter2-hunter2';
  const { attester, build } = await setUp(
    t,
    async (context) => {
      context.addMaterial({ name: 'script', digest: { sha256: 'ab' } });
      const uri = `git+https://user:pass@git.example.org/elements@abc?token=${secret}`;
      const annotations = { note: `with ${secret}`, isModified: false };
      for (let time = 0; time < 2; time += 1) {
        context.addMaterial({ name: 'elements', uri, digest: { gitCommit: 'abc' }, annotations });
      }
      await makeDisk(context);
    },
    { secrets: [secret] },
  );
  await build();
  assert.deepEqual(attester.builds[0]?.materials, [
    { name: 'script', digest: { sha256: 'ab' } },
    {
      name: 'elements',
      uri: 'git+https://git.example.org/elements@abc',
      digest: { gitCommit: 'abc' },
      annotations: { note: 'with ***', isModified: false },
    },
  ]);
});

test('the environment that is passed to the attester contains no secret', async (t) => {
  const envVars = {
    DIB_RELEASE: 'bookworm',
    DIB_DEV_USER_PASSWORD: 'abc',
    MIRROR: 'https://user:pw-of-mirror@mirror.example.org/',
    LINES: 'a secret text\nin lines',
  };
  const { attester, build } = await setUp(t, makeDisk, {
    envVars,
    secrets: ['secret text'],
    publicVariables: ['MIRROR', 'LINES'],
  });
  await build();
  assert.deepEqual(attester.builds[0]?.environment, {
    DIB_RELEASE: 'bookworm',
    DIB_DEV_USER_PASSWORD: '***',
    MIRROR: 'https://***@mirror.example.org/',
    LINES: 'a ***\nin lines',
  });
});

test('a build whose attester cannot sign runs no command', async (t) => {
  let hasRun = false;
  const { fixture, attester, build } = await setUp(t, async () => {
    hasRun = true;
  });
  attester.failures.check = new Error('the key cannot be read');
  await assert.rejects(build(), /the key cannot be read/);
  assert.equal(hasRun, false);
  await assertNothing(fixture);
});

test('a build that was not attested publishes nothing', async (t) => {
  const { fixture, attester, build } = await setUp(t);
  attester.failures.attestBuild = new Error('signing failed');
  await assert.rejects(build(), /signing failed/);
  await assertNothing(fixture);
  delete attester.failures.attestBuild;
  await build();
});

test('documents that the build wrote itself are removed, without following a link', async (t) => {
  const { fixture, build } = await setUp(t, async (context) => {
    const directory = join(context.directory, 'a.d');
    await mkdir(join(directory, 'attestations'), { recursive: true });
    await mkdir(join(directory, 'dib-manifests'));
    await writeFile(join(directory, 'attestations/upload-1.sigstore.json'), 'forged');
    await writeFile(join(directory, 'bom.cdx.json'), 'forged');
    await makeDisk(context);
  });
  await build();
  assert.deepEqual((await readdir(fixture.path('a.d'))).toSorted(), ['attestations', 'dib-manifests']);
  assert.deepEqual(await readdir(fixture.path('a.d/attestations')), ['build.sigstore.json']);

  const other = await setUp(t, async (context) => {
    await symlink(other.fixture.outside, join(context.directory, 'a.d'));
    await makeDisk(context);
  });
  await other.build();
  assert.deepEqual(await readdir(other.fixture.outside), []);
  assert.deepEqual(await readdir(other.fixture.path('a.d')), ['attestations']);
});

test('a converted file names its source, and its conversion is attested', async (t) => {
  const { fixture, attester, build } = await setUp(t);
  await build();
  const { repository, directory } = fixture;
  const file = await repository.file('a', ['qcow2'], { attester });
  const manifest = await readManifest(new Layout(directory).manifest('a'), 'a');
  const [raw, qcow2] = manifest?.files ?? [];
  assert.ok(raw && qcow2);
  assert.deepEqual(qcow2.from, { format: 'raw', sha256: raw.sha256 });
  assert.equal(file.checksums?.sha256, qcow2.sha256);
  assert.deepEqual(attester.conversions, [
    { imageId: 'a', imageName: 'debian', source: qcow2.from, file: qcow2, directory },
  ]);
  const documents = await readdir(fixture.path('a.d/attestations'));
  assert.deepEqual(documents.toSorted(), ['build.sigstore.json', 'convert-qcow2.sigstore.json']);
  await repository.file('a', ['qcow2'], { attester });
  assert.equal(attester.conversions.length, 1);
});

test('a missing attestation for a conversion is made later', async (t) => {
  const { fixture, attester, build } = await setUp(t);
  await build();
  const { repository } = fixture;
  attester.failures.attestConversion = new Error('signing failed');
  const convert = () => repository.file('a', ['qcow2'], { attester });
  await assert.rejects(convert(), /signing failed/);
  await assert.rejects(convert(), /signing failed/);
  delete attester.failures.attestConversion;
  await convert();
  assert.equal(attester.conversions[0]?.source.format, 'raw');
});

test('a conversion that was not attested before a restart is attested at its next use', async (t) => {
  const { fixture, attester, build } = await setUp(t);
  await build();
  const { checksums } = await fixture.repository.file('a', ['qcow2']);
  await fixture.close();
  await (await fixture.open()).file('a', ['qcow2'], { attester });
  assert.deepEqual(
    attester.conversions.map(({ file }) => file.sha256),
    [checksums?.sha256],
  );
});

test('a file that was replaced since its conversion is not attested', async (t) => {
  const { fixture, attester, build } = await setUp(t);
  await build();
  await fixture.repository.file('a', ['qcow2']);
  await fixture.close();
  await utimes(fixture.path('a.qcow2'), 1, 1);
  const { checksums } = await (await fixture.open()).file('a', ['qcow2'], { attester });
  assert.equal(checksums, undefined);
  assert.deepEqual(attester.conversions, []);
});

test('a file whose source has no known digest names no source', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const attester = new FakeAttester();
  const added = fixture.next('added');
  execFileSync('truncate', ['-s', '1M', fixture.path('a.raw')]);
  await added;
  await fixture.repository.file('a', ['qcow2'], { attester });
  assert.deepEqual(attester.conversions, []);
});

test('a conversion of another file replaces the attestation', async (t) => {
  const { fixture, attester, build } = await setUp(t);
  await build();
  const { repository } = fixture;
  await repository.file('a', ['qcow2'], { attester });
  await rm(fixture.path('a.qcow2'));
  while ((repository.get('a')?.files.length ?? 0) > 1)
    await new Promise((resolve) => setTimeout(resolve, 10));
  await repository.file('a', ['qcow2'], { attester });
  assert.equal(attester.conversions.length, 2);
  assert.deepEqual((await readdir(fixture.path('a.d/attestations'))).length, 2);
});

test('deleting an image waits for a document that is being added to it', async (t) => {
  const { fixture, build } = await setUp(t);
  await build();
  const { repository } = fixture;
  const { promise, resolve } = Promise.withResolvers<void>();
  const added = repository.withImage('a', async ({ id }) => {
    await promise;
    await mkdir(fixture.path(`${id}.d/late`));
  });
  const deleted = repository.delete('a');
  await assert.rejects(
    repository.withImage('a', async () => {}),
    withCode('image-not-found'),
  );
  resolve();
  await Promise.all([added, deleted]);
  await assertNothing(fixture);
});

test('a build’s commands see an empty file in place of a secret file', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const key = join(fixture.outside, 'key.pem');
  await writeFile(key, 'a secret');
  const said: string[] = [];
  const builder = new ScriptedBuilder(async (context) => {
    // Errors would use a separate pipe, so that their parts could arrive between lines of others.
    const script =
      'exec 2>/dev/null; cat "$1"; for p in 1 $2; do cat /proc/$p/root"$1" || echo refused; done; umount -l /proc; ls /proc';
    await context.run('sh', ['-c', script, 'sh', key, `${process.pid}`], {
      onLine: (line) => void said.push(line),
    });
    await makeImage(context);
  });
  await builder.build({ imageId: 'a', repository: fixture.repository, attester: new FakeAttester([key]) });
  assert.deepEqual(said, ['refused', 'refused']);
  assert.equal(await readFile(key, 'utf8'), 'a secret');
});

test('a build’s commands, even as root, cannot read a secret file on its own tmpfs', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const directory = await mountTmpfs(t, 'size=1m');
  const key = join(directory, 'key.pem');
  await writeFile(key, 'a secret');
  const said: string[] = [];
  const builder = new ScriptedBuilder(async (context) => {
    const script = `cat "$1"; umount "$1"; umount "$2"; cat "$1"
      mkdir m && mount --bind / m && cat "m$1"; umount m; mount --bind "$2" m && ls m`;
    const options = { onLine: (line: string) => void said.push(line) };
    await context.run('sh', ['-c', script, 'sh', key, directory], options);
    await makeImage(context);
  });
  await builder.build({ imageId: 'a', repository: fixture.repository, attester: new FakeAttester([key]) });
  assert.ok(!said.some((line) => line.includes('a secret') || line === 'key.pem'), said.join('\n'));
});

test('an attestation’s file name may contain no path and no special characters', () => {
  for (const name of ['build.sigstore.json', 'upload-4-1@2.sigstore.json']) checkAttestationName(name);
  for (const name of ['', '.json', '../a.json', 'a/b.json', 'a.txt', 'a..json', `${'a'.repeat(99)}.json`]) {
    assert.throws(() => checkAttestationName(name), TypeError, name);
  }
});

test('an attestation document that is too large is not read', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  const path = join(fixture.outside, 'build.sigstore.json');
  assert.equal(await readAttestation(path), undefined);
  await writeFile(path, 'x'.repeat(2 ** 20 + 1));
  await assert.rejects(readAttestation(path), withCode('directory-not-usable', /more than 1 MiB/));
});
