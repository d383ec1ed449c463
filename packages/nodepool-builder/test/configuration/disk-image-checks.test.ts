import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { formatDiagnostic } from '../../src/yaml/diagnostic.ts';

/** Returns the diagnostics of an accepted file: severity, line and reason. */
async function reportsOf(t: TestContext, text: string): Promise<string[]> {
  const file = join(temporaryDirectory(t), 'nodepool.yaml');
  writeFileSync(file, `images-dir: /i\n${text}`);
  const { warnings } = await loadConfiguration(file);
  return warnings.map((diagnostic) =>
    `${diagnostic.severity} ${formatDiagnostic('', diagnostic)}`.replace(' warning:', '').replace(/ :/, ' '),
  );
}

describe('names of disk images', () => {
  const cases: readonly (readonly [name: string, diagnostic: string])[] = [
    ['../../evil', 'contains a "/"'],
    ['a/b', 'contains a "/"'],
    ['-x', 'begins with a "-", as an option does'],
    ['.hidden', 'begins with a "."'],
    ['a b', 'contains white space or a control character'],
    ['n'.repeat(300), 'is longer than 238 bytes'],
  ];
  for (const [name, diagnostic] of cases) {
    it(`the disk image name "${name.slice(0, 10)}" causes a warning, as image ids would begin with it`, async (t) => {
      assert.deepEqual(await reportsOf(t, `diskimages:\n  - {name: '${name}'}\n`), [
        `warning 3:6: diskimages[0].name leads to image-ids that builders reject: each ${diagnostic}; choose a plain name`,
      ]);
    });
  }

  it('an abstract disk image may have any name, and a plain name causes no warning', async (t) => {
    const text = `diskimages:
  - {name: base/all, abstract: true}
  - {name: ubuntu-24.04_arm64+test, parent: base/all}
`;
    assert.deepEqual(await reportsOf(t, text), []);
  });

  it('the names of images with base-image are checked like disk image names', async (t) => {
    const text = `script-dir: /s
providers:
  - name: p
    image-type: raw
    cloud: c
    images: [{name: a/b, base-image: x, setup: s.sh}]
`;
    assert.match(
      (await reportsOf(t, text)).join('\n'),
      /^warning 7:15: providers\[0\]\.images\[0\]\.name leads to image-ids that builders reject: each contains a "\/"/m,
    );
  });
});

describe('names of providers and of their images', () => {
  it('a provider or image name that looks like an option, or cannot be a file name, causes a warning', async (t) => {
    const text = `providers:
  - {name: -p, type: directory, directory: /p, images: [{name: a/b}, {name: -x}, {name: good}]}
  - {name: clouds/east, cloud: c, image-type: raw, images: [{name: -y}, {name: a/b}]}
`;
    assert.deepEqual((await reportsOf(t, text)).slice(0, 4), [
      'warning 3:6: providers[0].name begins with a "-", so commands and hooks would parse it as an option; choose a plain name',
      'job-error 3:58: providers[0].images[0].name leads to invalid file names, so that uploads fail: each contains a "/"; choose a plain name',
      'job-error 3:71: providers[0].images[1].name leads to invalid file names, so that uploads fail: each begins with a "-", as an option does; choose a plain name',
      'warning 4:62: providers[1].images[0].name begins with a "-", so commands and hooks would parse it as an option; choose a plain name',
    ]);
  });
});

describe('values that no build can use', () => {
  it('env-vars that are not strings are reported', async (t) => {
    const text = `diskimages:
  - name: a
    env-vars:
      MAPPING: {a: b}
      LIST: [a]
      BOOLEAN: yes
      NUMBER: 5
      EMPTY:
      NUL: "a\\0b"
      "A=B": 'yes'
      GOOD: 'yes'
`;
    const diagnostic = 'is not a string: builds fail; put it in quotes';
    assert.deepEqual(await reportsOf(t, text), [
      `job-error 5:7: diskimages[0].env-vars.MAPPING ${diagnostic}`,
      `job-error 6:7: diskimages[0].env-vars.LIST ${diagnostic}`,
      `job-error 7:7: diskimages[0].env-vars.BOOLEAN ${diagnostic}`,
      `job-error 8:7: diskimages[0].env-vars.NUMBER ${diagnostic}`,
      `job-error 9:7: diskimages[0].env-vars.EMPTY ${diagnostic}`,
      'job-error 10:7: diskimages[0].env-vars.NUL contains a NUL: builds fail; remove it',
      'job-error 11:8: diskimages[0].env-vars.A=B has a name that is empty or contains "=" or a NUL: builds fail; correct the name',
    ]);
  });

  it('an open quote in elements is reported, also in an abstract parent', async (t) => {
    const text = `diskimages:
  - {name: base, abstract: true, elements: 'vm "base'}
  - {name: a, parent: base}
`;
    assert.deepEqual(await reportsOf(t, text), [
      'job-error 3:34: diskimages[0].elements has an unmatched quote or backslash: builds fail; close or remove it',
    ]);
  });

  it('env-vars that are not a mapping are ignored with a warning, as nodepool ignored them', async (t) => {
    const text = 'diskimages:\n  - {name: a, env-vars: [A=b]}\n  - {name: b, env-vars: }\n';
    assert.deepEqual(await reportsOf(t, text), [
      'warning 3:15: diskimages[0].env-vars is not a mapping, and is ignored; write "NAME: value" pairs, indented below it, or remove it',
    ]);
  });
});
