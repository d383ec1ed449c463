import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { formatDiagnostic } from '../../src/yaml/diagnostic.ts';

const ANOTHER_USER = { skip: process.geteuid?.() !== 0 && 'needs root' };

/** Creates a directory with the directory `there`, the program `run` and the file `text`. */
function site(t: TestContext): string {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, 'there'));
  for (const name of ['run', 'text']) writeFileSync(join(directory, name), '#!/bin/sh\n');
  chmodSync(join(directory, 'run'), 0o755);
  chmodSync(join(directory, 'text'), 0o644);
  return directory;
}

async function warningsOf(directory: string, text: string, checksHost = true): Promise<string[]> {
  const file = join(directory, 'nodepool.yaml');
  writeFileSync(file, text);
  const { warnings } = await loadConfiguration(file, { checksHost });
  return warnings.map((diagnostic) => formatDiagnostic('', diagnostic).replaceAll(`${directory}/`, ''));
}

const MISSING = `images-dir: gone
elements-dir: there:elements
script-dir: text
diskimages:
  - {name: a, dib-cmd: gone/dib, validate: {hook: ./hook --all}}
  - {name: b, dib-cmd: no-such-program}
  - {name: c, elements: [debain], env-vars: {PATH: /nowhere}}
  - {name: d, dib-cmd: no-such-program}
  - {name: e, abstract: true, dib-cmd: gone/too}
providers:
  - {name: p, type: directory, directory: pool, post-upload-hook: ./text, images: []}
`;

function lacks(path: string): string {
  return `needs directory "${path}", which does not exist on this host; create it, or name another one`;
}

it('a directory or program that the host lacks causes a warning with its line', async (t) => {
  const directory = site(t);
  const missing = 'which is not installed on this host, or not on PATH; install it';
  const program = `${missing}, or name another one`;
  const dib = `${missing} (Debian: apt-get install python3-diskimage-builder), or correct PATH`;
  assert.deepEqual(await warningsOf(directory, MISSING), [
    `:1:1: warning: images-dir ${lacks('gone')}`,
    `:2:1: warning: elements-dir ${lacks('elements')}`,
    ':3:1: warning: script-dir needs directory "text", which is not a directory; create it, or name another one',
    `:5:15: warning: diskimages[0].dib-cmd needs program "gone/dib", ${program}`,
    `:5:45: warning: diskimages[0].validate.hook needs program "hook", ${program}`,
    `:6:15: warning: diskimages[1].dib-cmd needs program "no-such-program", ${program}`,
    `:7:5: warning: diskimages[2] needs program "disk-image-create", ${dib}`,
    `:11:32: warning: providers[0].directory ${lacks('pool')}`,
    ':11:49: warning: providers[0].post-upload-hook needs program "text", which is not executable; install it, or name another one',
  ]);
});

it('build code that another user may change causes a warning', ANOTHER_USER, async (t) => {
  const directory = site(t);
  chownSync(join(directory, 'there'), 65534, 65534);
  chmodSync(join(directory, 'run'), 0o777);
  const text = `images-dir: .
elements-dir: there
diskimages:
  - {name: a, dib-cmd: ${directory}/run}
`;
  const remedy = 'let only root and this user write there';
  const reason = 'names code that another user can change:';
  assert.deepEqual(await warningsOf(directory, text), [
    `:2:1: warning: elements-dir ${reason} there belongs to user 65534; ${remedy}`,
    `:4:15: warning: diskimages[0].dib-cmd ${reason} run is writable for every user; ${remedy}`,
  ]);
});

it('existing directories and programs cause no warning, and without checksHost nothing does', async (t) => {
  const directory = site(t);
  const text = `images-dir: there
elements-dir: there
diskimages:
  - {name: a, dib-cmd: ${directory}/run, validate: {hook: [./run, -a]}}
  - {name: b, dib-cmd: run, env-vars: {PATH: '/nowhere:${directory}'}}
providers:
  - {name: p, type: directory, directory: there, post-upload-hook: ./run, images: []}
`;
  assert.deepEqual(await warningsOf(directory, text), []);
  assert.deepEqual(await warningsOf(directory, MISSING, false), []);
});

it('a misspelt element is reported once, where it is written, with the one that was meant', async (t) => {
  const directory = site(t);
  mkdirSync(join(directory, 'there/mine'));
  writeFileSync(join(directory, 'there/mine/element-deps'), 'debian-minmal\n');
  const text = `images-dir: there
elements-dir: there
diskimages:
  - name: base
    abstract: true
    elements: [vm, debain-minimal]
  - {name: a, parent: base}
  - {name: b, parent: base, elements: [mien]}
  - {name: c, elements: mine cloud-int}
  - {name: d, elements: [no-such-element, debian-minimal]}
  - {name: e}
  - {name: f, elements: [vm]}
  - {name: g, elements: [debian-minimal, ubuntu-minimal]}
  - {name: h, elements: [no-such-element], env-vars: {ELEMENTS_PATH: /gone}}
`;
  const where = 'which is neither in diskimage-builder nor in a directory of ELEMENTS_PATH';
  assert.deepEqual((await warningsOf(directory, text)).toSorted(), [
    ':10:26: warning: diskimages[4].elements[0] names element "no-such-element", ' +
      `${where}; correct its name, or add its directory to elements-dir`,
    ':11:5: diskimages[5].elements names no element: disk-image-create fails; ' +
      'add an operating system, such as debian-minimal, and what the image needs, such as vm',
    ':12:15: diskimages[6].elements has no operating system: disk-image-create rejects these elements; ' +
      'add an element such as debian-minimal',
    ':13:15: diskimages[7].elements has element "operating-system", which "debian-minimal" also provides: ' +
      'disk-image-create rejects both; remove one of them',
    ':14:55: warning: diskimages[8].env-vars.ELEMENTS_PATH names "/gone", which is not a directory on this host: ' +
      'disk-image-create rejects it; create it, or name another one',
    `:6:20: diskimages[0].elements[1] names element "debain-minimal", ${where}; did you mean "debian-minimal"?`,
    `:8:40: diskimages[2].elements[0] names element "mien", ${where}; did you mean "mine"?`,
    `:9:15: diskimages[3].elements names element "cloud-int", ${where}; did you mean "cloud-init"?`,
    ':9:15: diskimages[3].elements needs element "debian-minmal" for "mine", ' +
      `${where}; did you mean "debian-minimal"?`,
  ]);
});

it('elements are not checked without diskimage-builder or without a directory of elements-dir', async (t) => {
  const directory = site(t);
  const withoutDib = `images-dir: there
diskimages: [{name: a, elements: [debain-minimal], env-vars: {PATH: /nowhere}}]
`;
  const [warning = '', ...others] = await warningsOf(directory, withoutDib);
  assert.match(
    warning,
    /^:2:14: warning: diskimages\[0\] needs program "disk-image-create", which is not installed/,
  );
  assert.deepEqual(others, []);
  const withoutDirectory = `images-dir: there
elements-dir: gone
diskimages: [{name: a, elements: [debain-minimal]}]
`;
  assert.deepEqual(await warningsOf(directory, withoutDirectory), [
    `:2:1: warning: elements-dir ${lacks('gone')}`,
  ]);
});

it('an element causes a warning if a command of the site replaces disk-image-create', async (t) => {
  const directory = site(t);
  const text = `images-dir: there
diskimages: [{name: a, dib-cmd: ${directory}/run, elements: [debain-minimal]}, {name: b, dib-cmd: ${directory}/run}]
`;
  const [warning = '', ...others] = await warningsOf(directory, text);
  assert.match(
    warning,
    /^:2:\d+: warning: .* names element "debain-minimal", .* did you mean "debian-minimal"\?$/,
  );
  assert.deepEqual(others, []);
});
