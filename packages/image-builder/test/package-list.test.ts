// Not a unit test: it runs diskimage-builder and package managers.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeAttester } from '../../../test/fixtures/fake-attester.ts';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';
import { LIST_PACKAGES } from '../src/dib-elements.ts';
import { DibBuilder } from '../src/index.ts';
import { MINI_OS } from './mini-os.ts';

/** Lines that the script prints, with other programs first in its PATH. */
function listPackages(directory: string, env: Readonly<Record<string, string>> = {}): readonly string[] {
  const { stdout, stderr, status } = spawnSync('sh', [LIST_PACKAGES], {
    encoding: 'utf8',
    env: { PATH: `${directory}:${process.env.PATH}`, ...env },
    maxBuffer: 2 ** 24,
  });
  assert.equal(status, 0, stderr);
  return stdout.split('\n');
}

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

test('the arguments of disk-image-create do not change for a build that wants no package list', async (t) => {
  const { repository, outside } = await RepositoryFixture.open(t);
  const command = join(outside, 'stand-in');
  const script = '#!/bin/sh\necho "arguments: $*"\nwhile [ "$1" != -o ]; do shift; done\necho x > "$2.raw"\n';
  await writeFile(command, script, { mode: 0o755 });
  for (const [wantsPackages, elements] of [
    [false, 'vm'],
    [true, 'vm package-list'],
  ] as const) {
    const lines: string[] = [];
    const builder = new DibBuilder(
      { name: 'debian', formats: ['raw'] },
      { elements: ['vm'], 'dib-cmd': command },
    );
    await builder.build({
      imageId: `debian-${wantsPackages}`,
      repository,
      attester: new FakeAttester([], wantsPackages),
      onLine: (line) => lines.push(line),
    });
    const given = lines.find((line) => line.startsWith('arguments: ')) ?? assert.fail(lines.join('\n'));
    assert.match(given, new RegExp(`^arguments: -x -t raw --no-tmpfs -o \\S+ ${elements}$`));
  }
});

test('the package list script lists this Debian’s packages', (t) => {
  const lines = listPackages(temporaryDirectory(t));
  assert.match(lines[0] ?? '', /^os\tdebian\t\d+$/);
  assert.ok(lines.some((line) => /^deb\tdpkg\t1\.[^\t]+\t\w+$/.test(line)));
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

/** Output of package managers that Debian does not have, or not in each release. */
const OUTPUTS = {
  apk: `musl-1.2.5-r0 x86_64 {musl} (MIT) [installed]
alpine-baselayout-data-3.6.5-r0 x86_64 {alpine-baselayout} (GPL-2.0-only) [installed]
busybox-1.36.1-r29 x86_64 {busybox} (GPL-2.0-only) [installed] [upgradable to: busybox-1.36.1-r30]
.build-deps-20260101.123456 noarch {.build-deps} () [installed]`,
  pacman: `pacman 7.0.0.r6.gc685ae6-1
linux 6.12.1.arch1-1`,
};

test('the package list script lists the packages of apk and pacman', async (t) => {
  const directory = temporaryDirectory(t);
  for (const [name, output] of Object.entries(OUTPUTS)) {
    await writeFile(join(directory, name), `#!/bin/sh\ncat <<'END'\n${output}\nEND\n`, { mode: 0o755 });
  }
  const lines = listPackages(directory).filter((line) => /^(?:apk|pkg)/.test(line));
  assert.deepEqual(lines, [
    'apk\tmusl\t1.2.5-r0\tx86_64\tMIT',
    'apk\talpine-baselayout-data\t3.6.5-r0\tx86_64\tGPL-2.0-only',
    'apk\tbusybox\t1.36.1-r29\tx86_64\tGPL-2.0-only',
    'pkg\tpacman\t7.0.0.r6.gc685ae6-1',
    'pkg\tlinux\t6.12.1.arch1-1',
  ]);
});

for (const name of ['dpkg-query', 'rpm', 'apk', 'pacman']) {
  test(`the package list script fails if ${name} fails, rather than print half a list`, async (t) => {
    const directory = temporaryDirectory(t);
    const program = '#!/bin/sh\n[ "$1" != --eval ] || exec echo /\necho half-1-r1; exit 1\n';
    await writeFile(join(directory, name), program, { mode: 0o755 });
    const env = { PATH: `${directory}:${process.env.PATH}` };
    assert.notEqual(spawnSync('sh', [LIST_PACKAGES], { env, stdio: 'ignore' }).status, 0);
  });
}
