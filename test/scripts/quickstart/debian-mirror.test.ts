import assert from 'node:assert/strict';
import { test } from 'node:test';
import { debianFromApt } from '../../../scripts/quickstart/debian-mirror.ts';

const noLists = (path: string): string => assert.fail(`${path} was read`);

test("takes release, updates and security from apt's sources", () => {
  const { release, mirror, envVars } = debianFromApt(
    `http://mirror.test/debian/ trixie main Debian
http://mirror.test/debian/ trixie contrib Debian
http://mirror.test/debian/ trixie-updates main Debian
http://mirror.test/debian/ trixie-backports main Debian Backports
http://security.test/debian-security/ trixie-security main Debian-Security
http://other.test/ stable main Other Packages
`,
    noLists,
  );
  assert.equal(release, 'trixie');
  assert.equal(mirror, 'http://mirror.test/debian');
  assert.deepEqual(envVars, {
    DIB_DISTRIBUTION_MIRROR: 'http://mirror.test/debian',
    DIB_APT_SOURCES_CONF: `default:deb http://mirror.test/debian trixie main
updates:deb http://mirror.test/debian trixie-updates main
security:deb http://security.test/debian-security trixie-security main`,
    DIB_DEBOOTSTRAP_EXTRA_ARGS: '--include=zstd,initramfs-tools',
  });
});

test('skips a CD, follows a list of mirrors, and adds certificates for HTTPS', () => {
  const { mirror, envVars } = debianFromApt(
    `cdrom:[Debian GNU/Linux 12]/ bookworm main Debian
mirror+file:/etc/apt/mirrors/debian.list/ bookworm main Debian
`,
    (path) => {
      assert.equal(path, '/etc/apt/mirrors/debian.list');
      return '# the nearest first\nhttps://mirror.test/debian/\tpriority:1\nhttp://far.test/debian\n';
    },
  );
  assert.equal(mirror, 'https://mirror.test/debian');
  assert.equal(envVars.DIB_APT_SOURCES_CONF, 'default:deb https://mirror.test/debian bookworm main');
  assert.equal(envVars.DIB_DEBOOTSTRAP_EXTRA_ARGS, '--include=zstd,initramfs-tools,ca-certificates');
});

for (const [machine, output] of [
  ['whose apt has no lists', ''],
  ['that is no Debian', 'http://archive.test/ubuntu/ noble main Ubuntu\n'],
  ['with a CD alone', 'cdrom:[Debian GNU/Linux 12]/ bookworm main Debian\n'],
  ['with nothing but updates', 'http://mirror.test/debian/ bookworm-updates main Debian\n'],
] as const) {
  test(`a machine ${machine} gets a remedy`, () => {
    assert.throws(() => debianFromApt(output, noLists), /run apt-get update; elsewhere set DIB_RELEASE/);
  });
}
