// Only in test:all: it builds with all elements of a Debian image.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, cp, mkdir, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeAttester } from '../../../test/fixtures/fake-attester.ts';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { fileDigest } from '../src/build/file-digest.ts';
import { CommandBuilder } from '../src/command.ts';
import { DibBuilder, type Material } from '../src/index.ts';
import { MINI_OS } from './mini-os.ts';

function git(directory: string, ...args: string[]): string {
  const all = ['-C', directory, '-c', 'user.name=n', '-c', 'user.email=e', ...args];
  return execFileSync('git', all, {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: '/nonexistent' },
  }).trim();
}

async function sha256(path: string): Promise<string | undefined> {
  return await fileDigest(path, { limit: 2 ** 20, signal: new AbortController().signal });
}

test('diskimage-builder reports its version, and each element with its repository', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const elementsDir = join(await realpath(fixture.outside), 'elements');
  await cp(MINI_OS.elementsDir ?? assert.fail(), elementsDir, { recursive: true });
  git(elementsDir, 'init', '-q');
  git(elementsDir, 'add', '.');
  git(elementsDir, 'commit', '-q', '-m', 'elements');
  git(elementsDir, 'remote', 'add', 'origin', 'https://me:secret@git.example.org/elements');
  const gitCommit = git(elementsDir, 'rev-parse', 'HEAD');
  await mkdir(join(elementsDir, 'mini-new'));
  const attester = new FakeAttester();
  const builder = new DibBuilder(
    { ...MINI_OS, elementsDir },
    { elements: ['mini-os', 'mini-new', 'sysprep'] },
  );
  await writeFile(join(elementsDir, 'mini-new', 'element-deps'), '');
  await builder.build({ imageId: 'mini-1', repository: fixture.repository, attester });
  const materials = new Map<string, Material>();
  for (const material of attester.builds[0]?.materials ?? []) materials.set(material.name, material);
  const dib = materials.get('diskimage-builder');
  assert.match(String(dib?.annotations?.version), /^\d+\.\d+/);
  assert.match(dib?.digest.sha256 ?? '', /^[0-9a-f]{64}$/);
  const uri = `git+https://git.example.org/elements@${gitCommit}`;
  assert.deepEqual(materials.get('element mini-os'), {
    name: 'element mini-os',
    uri,
    digest: { gitCommit },
    annotations: { directory: join(elementsDir, 'mini-os'), isModified: false },
  });
  const { digest, annotations } = materials.get('element mini-new') ?? assert.fail();
  assert.equal(annotations?.isModified, true);
  assert.match(digest.dirHash ?? '', /^[0-9a-f]{64}$/);
  const own = materials.get('element sysprep');
  assert.match(String(own?.annotations?.directory), /diskimage_builder\/elements\/sysprep$/);
  assert.match(own?.digest.dirHash ?? '', /^[0-9a-f]{64}$/);
});

/** Replaces disk-image-create: prints the output of a real one, and creates the file that `-o` names. */
const STAND_IN = `#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo "2026-05-01 00:00:00.000 | diskimage-builder version 3.27.0"
echo "2026-05-01 00:00:00.000 | Extracting base root image from $DIB_IMAGE_CACHE/base.tgz"
echo "2026-05-01 00:00:00.000 | Extracting base root image from /etc/passwd"
echo "2026-05-01 00:00:00.000 | jammy.squashfs: OK"
echo base > "$DIB_IMAGE_CACHE/base.tgz"; echo jammy > "$DIB_IMAGE_CACHE/jammy.squashfs"
mkdir -p "$2.d/dib-manifests"
echo "nova git /opt/nova https://me:secret@opendev.org/openstack/nova ${'a'.repeat(40)}" > "$2.d/dib-manifests/dib-manifest-git-1"
printf content > "$2.raw"
`;

test('repositories and base images that diskimage-builder fetched are materials', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const { outside, repository } = fixture;
  const command = join(outside, 'stand-in');
  await writeFile(command, STAND_IN);
  await chmod(command, 0o755);
  const attester = new FakeAttester();
  const diskimage = { name: 'debian', formats: ['raw'] as const, envVars: { DIB_IMAGE_CACHE: outside } };
  const builder = new DibBuilder(diskimage, { 'dib-cmd': command });
  await builder.build({ imageId: 'a', repository, attester });
  const [program, ...materials] = attester.builds[0]?.materials ?? [];
  assert.deepEqual(program?.digest, { sha256: await sha256(command) });
  const [base, jammy] = ['base.tgz', 'jammy.squashfs'].map((name) => join(outside, name)) as [string, string];
  assert.deepEqual(materials, [
    {
      name: 'repository nova',
      uri: `git+https://opendev.org/openstack/nova@${'a'.repeat(40)}`,
      digest: { gitCommit: 'a'.repeat(40) },
    },
    {
      name: 'base image',
      digest: { sha256: await sha256(base) },
      annotations: { path: await realpath(base) },
    },
    {
      name: 'base image',
      digest: { sha256: await sha256(jammy) },
      annotations: { path: await realpath(jammy) },
    },
  ]);
});

test('a build command reports its program and the scripts among its arguments', async (t) => {
  const { outside, repository } = await RepositoryFixture.open(t);
  const script = join(outside, 'make.sh');
  await writeFile(script, 'printf content > "$1"');
  const attester = new FakeAttester();
  const builder = new CommandBuilder(
    { name: 'debian', formats: [] },
    { command: ['sh', script, '{output.raw}', '/missing', outside] },
  );
  await builder.build({ imageId: 'a', repository, attester });
  const [program, file, ...others] = attester.builds[0]?.materials ?? [];
  assert.equal(program?.name, 'program sh');
  assert.match(program.digest.sha256 ?? '', /^[0-9a-f]{64}$/);
  const expected = {
    name: `file ${script}`,
    digest: { sha256: await sha256(script) },
    annotations: { path: script },
  };
  assert.deepEqual(file, expected);
  assert.deepEqual(others, []);
});
