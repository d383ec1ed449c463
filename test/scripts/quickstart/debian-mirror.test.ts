import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atMirror, debianFromApt } from '../../../scripts/quickstart/debian-mirror.ts';

const noLists = (path: string): string => assert.fail(`${path} was read`);

test('the Debian release, main archive and security archive come from apt’s sources', () => {
  const debian = debianFromApt(
    `http://mirror.test/debian/ trixie main Debian
http://mirror.test/debian/ trixie contrib Debian
http://mirror.test/debian/ trixie-updates main Debian
http://mirror.test/debian/ trixie-backports main Debian Backports
http://security.test/debian-security/ trixie-security main Debian-Security
http://other.test/ stable main Other Packages
`,
    noLists,
  );
  assert.deepEqual(debian, {
    release: 'trixie',
    main: 'http://mirror.test/debian',
    security: 'http://security.test/debian-security',
  });
});

test('a CD in apt’s sources is skipped, and a list of mirrors is followed', () => {
  const { main, security } = debianFromApt(
    `cdrom:[Debian GNU/Linux 12]/ bookworm main Debian
mirror+file:/etc/apt/mirrors/debian.list/ bookworm main Debian
`,
    (path) => {
      assert.equal(path, '/etc/apt/mirrors/debian.list');
      return '# the nearest first\nhttps://mirror.test/debian/\tpriority:1\nhttp://far.test/debian\n';
    },
  );
  assert.equal(main, 'https://mirror.test/debian');
  assert.equal(security, 'http://deb.debian.org/debian-security');
});

for (const [machine, output] of [
  ['whose apt has no lists', ''],
  ['that is not a Debian', 'http://archive.test/ubuntu/ noble main Ubuntu\n'],
  ['with only a CD', 'cdrom:[Debian GNU/Linux 12]/ bookworm main Debian\n'],
  ['with only updates', 'http://mirror.test/debian/ bookworm-updates main Debian\n'],
] as const) {
  test(`a machine ${machine} uses Debian’s own archives`, () => {
    assert.deepEqual(debianFromApt(output, noLists), {
      release: 'stable',
      main: 'http://deb.debian.org/debian',
      security: 'http://deb.debian.org/debian-security',
    });
  });
}

const MIRROR = { release: 'trixie', main: 'https://mirror.test/debian', security: 'http://mirror.test/sec' };

for (const [url, expected] of [
  [
    'http://deb.debian.org/debian/dists/trixie/InRelease',
    'https://mirror.test/debian/dists/trixie/InRelease',
  ],
  ['http://deb.debian.org/debian-security/pool/a.deb', 'http://mirror.test/sec/pool/a.deb'],
  ['http://security.debian.org/debian-security/pool/a.deb', 'http://mirror.test/sec/pool/a.deb'],
  [
    'http://security.debian.org/dists/trixie-security/Release',
    'http://mirror.test/sec/dists/trixie-security/Release',
  ],
  ['http://deb.debian.org/other', 'http://deb.debian.org/other'],
  ['http://example.org/debian/a.deb', 'http://example.org/debian/a.deb'],
] as const) {
  test(`the quickstart fetches ${url} from ${expected}`, () => {
    assert.equal(atMirror(url, MIRROR), expected);
  });
}
