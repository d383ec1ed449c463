import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { type LoadedConfiguration, loadConfiguration } from '../../src/configuration/load.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/yaml/diagnostic.ts';

const MAIN = `
images-dir: /i
diskimages:
  - {name: a, env-vars: {TOKEN: none, COLOUR: blue}}
  - {name: b}
`;

async function load(t: TestContext, secure: string): Promise<LoadedConfiguration & { secure: string }> {
  const directory = temporaryDirectory(t);
  const [main, file] = ['nodepool.yaml', 'secure.yaml'].map((name) => join(directory, name)) as [
    string,
    string,
  ];
  writeFileSync(main, MAIN);
  writeFileSync(file, secure);
  return { ...(await loadConfiguration(main, { secure: file })), secure: file };
}

describe('secret env-vars', () => {
  it('secret env-vars override nodepool.yaml’s, and keys for other programs are ignored', async (t) => {
    const { configuration, files, warnings, secure } = await load(
      t,
      `
zookeeper-servers: [{host: zk}]
diskimages:
  - {name: a, env-vars: {TOKEN: hunter2, KEY: 'two words'}}
  - {name: elsewhere, env-vars: {TOKEN: hunter3}}
`,
    );
    const [a, b] = configuration.diskimages;
    assert.deepEqual(a?.envVars, { TOKEN: 'hunter2', COLOUR: 'blue', KEY: 'two words' });
    assert.deepEqual(a.secrets, ['hunter2', 'two words']);
    assert.deepEqual([b?.envVars, b?.secrets], [{}, []]);
    assert.deepEqual(warnings, []);
    assert.ok(files.includes(secure), 'it is watched');
  });

  const DIAGNOSTICS: readonly (readonly [what: string, text: string, diagnostic: string])[] = [
    [
      'a value that is not a string',
      'diskimages:\n  - name: a\n    env-vars:\n      PIN: 123456\n',
      'secure.yaml:4:7: diskimages[0].env-vars.PIN must be a string, but is a number; put it in quotes',
    ],
    [
      'an entry without a name',
      'diskimages:\n  - env-vars: {A: b}\n',
      'secure.yaml:2:5: diskimages[0] lacks the key "name"; add "name: …"',
    ],
    [
      'the nodepool daemon’s own INI file',
      '; of nodepoold\n[database]\ndburi=mysql://nodepool:123456@localhost/\n',
      "secure.yaml:1:1: the file is not YAML, but an INI file, such as the nodepool daemon's secure.conf; name a YAML file with diskimages, or none",
    ],
    [
      'a value that YAML reads as a reference',
      'diskimages:\n  - name: a\n    env-vars: {PIN: *123456}\n',
      'secure.yaml:3:22: the YAML is invalid there; correct it, and put values in quotes',
    ],
  ];
  for (const [what, text, diagnostic] of DIAGNOSTICS) {
    it(`secret env-vars are rejected for ${what}, and no value is shown`, async (t) => {
      await assert.rejects(load(t, text), (error) => {
        assert.ok(error instanceof ConfigurationError, String(error));
        assert.deepEqual(
          error.diagnostics.map((found) => formatDiagnostic('secure.yaml', found)),
          [diagnostic],
        );
        assert.doesNotMatch(error.message, /123456/);
        return true;
      });
    });
  }

  it('a missing file with secret env-vars is reported with its option', async (t) => {
    const main = join(temporaryDirectory(t), 'nodepool.yaml');
    writeFileSync(main, MAIN);
    const loaded = loadConfiguration(main, { secure: join(main, '../no.yaml') });
    await assert.rejects(loaded, /no\.yaml:1:1: cannot read the file: .*correct -s FILE/);
  });
});
