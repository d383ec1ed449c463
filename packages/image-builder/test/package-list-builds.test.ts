// Only in test:all: it waits for three builds, and needs rpm.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeAttester } from '../../../test/fixtures/fake-attester.ts';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';
import { DibBuilder } from '../src/index.ts';
import { listPackages } from './list-packages.ts';
import { MINI_OS } from './mini-os.ts';

test('a diskimage-builder build that wants a package list gets one from the image’s dpkg', async (t) => {
  const { repository, outside } = await RepositoryFixture.open(t);
  const attester = new FakeAttester([], true);
  const builder = new DibBuilder(MINI_OS, { elements: ['mini-dpkg'] });
  const image = await builder.build({ imageId: 'mini-1', repository, attester });
  assert.equal(
    attester.packageList,
    'os\tmini\t\ndeb\tcurl\t7.88.1-10+deb12u5\tamd64\ndeb\ttzdata\t2026a-0+deb12u1\tall\n',
  );
  const [file] = image.files;
  const inside = execFileSync('debugfs', ['-R', 'ls -p /', file?.path ?? ''], {
    cwd: outside,
    encoding: 'utf8',
  });
  assert.doesNotMatch(inside, /package/);
});

test('a build of an image without a package manager succeeds with an empty package list', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  const attester = new FakeAttester([], true);
  await new DibBuilder(MINI_OS, { elements: ['mini-os'] }).build({ imageId: 'mini-1', repository, attester });
  assert.equal(attester.packageList, 'os\tmini\t\n');
});

test('a build of an image whose package manager fails succeeds without a package list', async (t) => {
  const { repository, outside } = await RepositoryFixture.open(t);
  const element = join(outside, 'broken/install.d');
  await mkdir(element, { recursive: true });
  await writeFile(join(element, '60-broken'), '#!/bin/bash\necho damaged > /var/lib/dpkg/status\n', {
    mode: 0o755,
  });
  const attester = new FakeAttester([], true);
  const lines: string[] = [];
  const elementsDir = `${outside}:${MINI_OS.elementsDir}`;
  await new DibBuilder({ ...MINI_OS, elementsDir }, { elements: ['mini-dpkg', 'broken'] }).build({
    imageId: 'mini-1',
    repository,
    attester,
    onLine: (line) => lines.push(line),
  });
  assert.equal(attester.packageList, undefined);
  assert.ok(lines.some((line) => line.includes('package-list: the packages could not be listed')));
});

const SPECIFICATION = `Name: demo-tool
Version: 1.2
Release: 3
Epoch: 4
Summary: a tool
License: MIT
BuildArch: noarch
%description
%{summary}
%files
`;

test('the package list script lists the packages that rpm installed', async (t) => {
  const home = temporaryDirectory(t);
  // Debian 12's rpm keeps its database in the user's home, Debian 13's keeps it in /var/lib.
  await writeFile(join(home, '.rpmmacros'), `%_dbpath ${home}/.rpmdb\n`);
  const run = (command: string, ...args: readonly string[]): string =>
    execFileSync(command, args, { env: { ...process.env, HOME: home }, encoding: 'utf8' });
  await writeFile(join(home, 'demo.spec'), SPECIFICATION);
  run('rpmbuild', '-bb', '--quiet', '--define', `_topdir ${home}/build`, join(home, 'demo.spec'));
  run('rpm', '-i', '--justdb', '--nodeps', join(home, 'build/RPMS/noarch/demo-tool-1.2-3.noarch.rpm'));
  const lines = listPackages(home, { HOME: home }).filter((line) => line.startsWith('rpm'));
  assert.deepEqual(lines, ['rpm\tdemo-tool\t4:1.2-3\tnoarch\tMIT']);
});

test('the package list script creates no database for an rpm that has installed nothing', async (t) => {
  const home = temporaryDirectory(t);
  listPackages(home, { HOME: home });
  assert.deepEqual(await readdir(home), []);
});
