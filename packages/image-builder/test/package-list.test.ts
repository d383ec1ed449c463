// Not a unit test: it runs diskimage-builder and package managers.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeAttester } from '../../../test/fixtures/fake-attester.ts';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';
import { LIST_PACKAGES } from '../src/dib-elements.ts';
import { DibBuilder } from '../src/index.ts';
import { listPackages } from './list-packages.ts';

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
