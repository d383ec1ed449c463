import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { DecisiveLines } from '../../src/process/decisive-lines.ts';

/** Output of real programs on Debian 12, shortened; `dib-*` with disk-image-create of diskimage-builder 3.13. */
const LOGS = join(import.meta.dirname, 'logs');

/** The failed step, if the log contains one, and the decisive lines of each log. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  'apt-404': [
    'Err:3 http://deb.debian.org/debian nosuchsuite Release',
    '404  Not Found [IP: 192.0.2.80 80]',
    "E: The repository 'http://deb.debian.org/debian nosuchsuite Release' does not have a Release file.",
  ],
  'apt-depends': [
    'The following packages have unmet dependencies:',
    'needy : Depends: libfoo (>= 2) but it is not installable',
    'Depends: hello (>= 99)',
    'E: Unable to correct problems, you have held broken packages.',
  ],
  'apt-host': [
    'Err:1 http://mirror.invalid/debian bookworm InRelease',
    "Could not resolve 'mirror.invalid'",
    "W: Failed to fetch http://mirror.invalid/debian/dists/bookworm/InRelease  Could not resolve 'mirror.invalid'",
    'E: Unable to locate package hello',
  ],
  'apt-locate': ['E: Unable to locate package foo-nope'],
  'debootstrap-mirror': ['E: Failed getting release file http://127.0.0.1:9/debian/dists/bookworm/Release'],
  'debootstrap-package': ["E: Couldn't find these debs: foo-nope"],
  'debootstrap-suite': ['E: No such script: /usr/share/debootstrap/scripts/nosuch'],
  'dib-apt': ['in install.d/01-package-installs', 'E: Unable to locate package foo-nope'],
  'dib-block-device': [
    "diskimage_builder.block_device.exception.BlockDeviceSetupException: Config entry is not a plugin value: {'nonsense': {'a': 1}}",
  ],
  'dib-command-not-found': [
    'in install.d/50-f-cmd',
    '/tmp/in_target.d/install.d/50-f-cmd: line 3: no-such-command: command not found',
  ],
  'dib-debootstrap': [
    'in root.d/08-debootstrap',
    'E: Failed getting release file http://deb.debian.org/debain/dists/bookworm/Release',
  ],
  'dib-download': [
    'in extra-data.d/50-f-curl',
    "curl: (7) Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server",
    'tar: Error is not recoverable: exiting now',
  ],
  'dib-git': [
    'in extra-data.d/50-f-git',
    "fatal: unable to access 'https://127.0.0.1:9/no/such.git/': Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server",
  ],
  'dib-image-full': ["cp: error writing '/tmp/dib_build.kdyLnflr/mnt/payload': No space left on device"],
  'dib-missing-element': [
    "diskimage_builder.element_dependencies.MissingElementException: Element 'no-such-element' not found",
  ],
  'dib-mount': [
    'in install.d/50-f-mount',
    'mount: mounting none on /absent/dir failed: No such file or directory',
  ],
  'dib-pip': [
    'in extra-data.d/50-f-pip',
    'ERROR: Could not find a version that satisfies the requirement no-such-package-foo-nope (from versions: none)',
    'ERROR: No matching distribution found for no-such-package-foo-nope',
  ],
  'dib-python': [
    'in extra-data.d/50-f-python',
    "FileNotFoundError: [Errno 2] No such file or directory: '/absent/settings.json'",
  ],
  'dib-unbound-variable': [
    'in install.d/50-f-unbound',
    '/tmp/in_target.d/install.d/50-f-unbound: line 3: NOT_SET: unbound variable',
  ],
  'dnf-depends': [
    'Error:',
    'Problem: conflicting requests',
    '- nothing provides libfoo >= 2 needed by needy-1-1.noarch',
  ],
  'dnf-host': [
    "Errors during downloading metadata for repository 'base':",
    "- Curl error (6): Couldn't resolve host name for http://mirror.invalid/centos [Could not resolve host: mirror.invalid]",
    "Error: Failed to download metadata for repo 'base': Cannot prepare internal mirrorlist: Curl error (6): Couldn't resolve host name for http://mirror.invalid/centos [Could not resolve host: mirror.invalid]",
  ],
  'dnf-none': ['No match for argument: foo-nope', 'Error: Unable to find a match: foo-nope'],
  'dnf-norepo': [
    'Error: There are no enabled repositories in "/etc/yum.repos.d", "/etc/yum/repos.d", "/etc/distro.repos.d".',
  ],
  'dnf-repo': [
    "Errors during downloading metadata for repository 'base':",
    "- Curl error (7): Couldn't connect to server for http://127.0.0.1:9/centos/repodata/repomd.xml [Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server]",
    "Error: Failed to download metadata for repo 'base': Cannot download repomd.xml: Cannot download repodata/repomd.xml: All mirrors were tried",
  ],
  'dpkg-depends': [
    'dpkg: dependency problems prevent configuration of needy:',
    'needy depends on libfoo (>= 2); however:',
    'Package libfoo is not installed.',
    '…',
    'dependency problems - leaving unconfigured',
  ],
  'dpkg-lock': [
    'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 5950 (python3)',
    'E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?',
  ],
  'dpkg-postinst': [
    '/var/lib/dpkg/info/agent.postinst: 3: adduserr: not found',
    'dpkg: error processing package agent (--configure):',
    'installed agent package post-installation script subprocess returned error exit status 127',
  ],
  'pip-build': ["error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory"],
  'pip-nofile': [
    "ERROR: Could not open requirements file: [Errno 2] No such file or directory: '/opt/requirements.txt'",
  ],
  'pip-none': [
    'ERROR: Could not find a version that satisfies the requirement no-such-thing (from versions: none)',
    'ERROR: No matching distribution found for no-such-thing',
  ],
  'pip-setup': ["ModuleNotFoundError: No module named 'no_such_module'"],
  venv: [
    'The virtual environment was not created successfully because ensurepip is not',
    '…',
    'Failing command: /opt/venv/bin/python3',
  ],
};

function decisive(text: string): DecisiveLines {
  const lines = new DecisiveLines();
  for (const line of text.split('\n')) lines.add(line);
  return lines;
}

function log(name: string): string {
  return readFileSync(join(LOGS, `${name}.log`), 'utf8');
}

describe('the decisive lines of a real log', () => {
  for (const name of readdirSync(LOGS).map((file) => file.replace(/\.log$/, ''))) {
    it(`the decisive lines of ${name}.log are found`, () => {
      const { step, lines } = decisive(log(name));
      assert.deepEqual([...(step === undefined ? [] : [`in ${step}`]), ...lines], EXPECTED[name]);
    });
  }
});

describe('the decisive lines', () => {
  const TIME = '2026-11-23 05:01:46.525 | ';
  const MOUNT = 'mount: mounting none on /absent/dir failed: No such file or directory';

  it('the decisive lines are those before the cleanup, even if that fails with a traceback', () => {
    const traceback = [
      'Traceback (most recent call last):',
      '  File "x.py", line 7, in <module>',
      'OSError: busy',
    ];
    const cleanup = traceback.map((line) => `${TIME}${line}`).join('\n');
    assert.deepEqual(decisive(`${log('dib-mount')}${cleanup}`).lines, [MOUNT]);
  });

  it('the decisive lines omit an error that a diskimage-builder step survived', () => {
    const survived = [`dib-run-parts Running /x/pre-install.d/10-agent`, 'E: Unable to locate package agent'];
    const text = [...survived, 'dib-run-parts 10-agent completed'].map((line) => `${TIME}${line}\n`).join('');
    assert.deepEqual(decisive(`${text}${log('dib-mount')}`).lines, [MOUNT]);
    assert.deepEqual(decisive(`${text}${TIME}install.d\n`).lines, ['install.d']);
  });

  it('the decisive lines omit an error that a command survived before it failed with another', () => {
    const text = [
      'curl: (7) no route',
      '+ : use the copy',
      '+ mount /dev/vdb /data',
      'mount: /data: does not exist.',
    ];
    assert.deepEqual(decisive(text.join('\n')).lines, ['mount: /data: does not exist.']);
  });

  it('the decisive lines end with the last line of a command that continued after an error', () => {
    const text = ['curl: (7) no route', 'using the copy of yesterday', 'the copy is damaged'];
    assert.deepEqual(decisive(text.join('\n')).lines, ['curl: (7) no route', '…', 'the copy is damaged']);
  });

  it('the decisive lines contain a cleanup’s error only if there is no other', () => {
    const umount = 'umount: /mnt: not mounted.';
    assert.deepEqual(decisive(`cp: x: Permission denied\n${umount}`).lines, ['cp: x: Permission denied']);
    assert.deepEqual(decisive(`${umount}\ncp: x: Permission denied`).lines, ['cp: x: Permission denied']);
    assert.deepEqual(decisive(`started\n${umount}`).lines, [umount]);
  });

  it('the decisive lines contain the first and the last error in a chain of exceptions', () => {
    const first = ['Traceback (most recent call last):', '  File "x.py", line 7', "KeyError: 'size'", ''];
    const cause = ['During handling of the above exception, another exception occurred:', ''];
    const text = [...first, ...cause, ...first.slice(0, 2), 'site.NoFlavor: no flavor has a size'];
    assert.deepEqual(decisive(text.join('\n')).lines, [
      "KeyError: 'size'",
      'site.NoFlavor: no flavor has a size',
    ]);
  });

  it('the decisive lines are the last ones if no line has an error, without traced commands if possible', () => {
    assert.deepEqual(decisive('one\ntwo\n\n+ exit 3\nthree\nfour\n').lines, ['two', 'three', 'four']);
    assert.deepEqual(decisive('+ false\n+ exit 3\n').lines, ['+ false', '+ exit 3']);
    assert.deepEqual(decisive('').lines, []);
  });

  it('the decisive lines of a long output are few', () => {
    const text = Array.from({ length: 40 }, (_, n) => `E: ${n}`);
    assert.deepEqual(decisive(text.join('\n')).lines, ['E: 0', 'E: 1', 'E: 2', '…', 'E: 39']);
  });

  for (const line of [
    "+ echo 'E: Unable to locate package'",
    'W: Some index files failed to download.',
    'sudo: unable to resolve host builder: Name or service not known',
    "tar: Removing leading `/' from member names",
    'mount: (hint) your fstab has been modified, but systemd still uses',
    'ERRORS: 0',
    'checking for error: none',
  ]) {
    it(`the decisive lines do not contain this line as an error: ${line}`, () => {
      assert.deepEqual(decisive(`${line}\nlast`).lines, line.startsWith('+') ? ['last'] : [line, 'last']);
    });
  }
});
