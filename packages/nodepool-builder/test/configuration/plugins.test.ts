// Not a unit test: each plugin is imported, and stays in this process.
import assert from 'node:assert/strict';
import { chmod, chown, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { BaseImageBuilder } from '@nodepool-builder/image-builder';
import { NO_SERVICES } from '../../../../test/fixtures/builder-services.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { type LoadedConfiguration, loadConfiguration } from '../../src/configuration/load.ts';
import { jsonSchema } from '../../src/configuration/schema.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/yaml/diagnostic.ts';

/** A builder whose images are empty. */
function builder(type: string): string {
  return `
import { BaseImageBuilder } from '@nodepool-builder/image-builder';
class Builder extends BaseImageBuilder {
  async createImage() {}
}
export const module = {
  type: '${type}',
  settings: { type: 'object', properties: {} },
  create: (diskimage) => new Builder(diskimage),
};
`;
}

/** Writes the files of a site. Each test needs a directory, because Node imports each file once. */
async function site(t: TestContext, files: Readonly<Record<string, string>>): Promise<string> {
  const directory = temporaryDirectory(t);
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), content);
  }
  return join(directory, 'nodepool.yaml');
}

async function load(
  t: TestContext,
  plugins: readonly string[],
  files: Readonly<Record<string, string>> = {},
): Promise<LoadedConfiguration> {
  return await loadConfiguration(await site(t, { 'nodepool.yaml': configuration(plugins), ...files }));
}

function configuration(plugins: readonly string[], text = ''): string {
  return `images-dir: images\nplugins:\n${plugins.map((name) => `  - '${name}'\n`).join('')}${text}`;
}

/** Returns the error of a configuration with one plugin, without the directory. */
async function errorOf(
  t: TestContext,
  plugin: string,
  files: Readonly<Record<string, string>> = {},
): Promise<string> {
  const file = await site(t, { 'nodepool.yaml': configuration([plugin]), ...files });
  const error: unknown = await loadConfiguration(file).then(
    () => assert.fail('the plugin is loaded'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof ConfigurationError)) throw error;
  assert.equal(error.diagnostics.length, 1);
  return error.message.replaceAll(dirname(file), '.');
}

const ANOTHER_USER = { skip: process.geteuid?.() !== 0 && 'needs root' };
const own = (directory: string): Promise<void> => chown(directory, 65534, 65534);
const ownDependency = (directory: string): Promise<void> => own(join(directory, 'node_modules/dependency'));
const open = (directory: string): Promise<void> => chmod(directory, 0o777);

describe('plugins', () => {
  it('plugins may be one or several modules of a JavaScript or TypeScript file', async (t) => {
    const { plugins, warnings } = await load(t, ['./one.js', './sub/two.ts'], {
      'package.json': '{"type": "module"}',
      'one.js': `${builder('one')} export default module;`,
      'sub/two.ts': `${builder('two')} const third: object = { ...module, type: 'three' }; export default [module, third];`,
    });
    assert.deepEqual(warnings, []);
    assert.deepEqual(plugins.names, ['./one.js', './sub/two.ts']);
    for (const type of ['dib', 'one', 'two', 'three']) assert.ok(plugins.modules.builders.has(type), type);
  });

  it('plugins may be packages next to the configuration, also ones that do not export CommonJS', async (t) => {
    const { plugins } = await load(t, ['@example/plugin'], {
      'node_modules/@example/plugin/package.json':
        '{"name": "@example/plugin", "type": "module", "exports": {"import": "./main.js"}}',
      'node_modules/@example/plugin/main.js': `${builder('packaged')} export default module;`,
    });
    assert.ok(plugins.modules.builders.has('packaged'));
  });

  it('plugins next to nodepool-builder precede packages of the same name next to the configuration', async (t) => {
    const { plugins } = await load(t, ['@nodepool-builder/provider-s3'], {
      'node_modules/@nodepool-builder/provider-s3/package.json': '{"exports": "./main.mjs"}',
      'node_modules/@nodepool-builder/provider-s3/main.mjs': `${builder('second-copy')} export default module;`,
    });
    assert.ok(plugins.modules.providers.has('s3'));
    assert.equal(plugins.modules.builders.has('second-copy'), false);
  });

  it(
    'plugins that another user may change are rejected, and their code does not run',
    ANOTHER_USER,
    async (t) => {
      const evil = 'globalThis.ranForeignPlugin = true; export default [];';
      const innocent = 'import "dependency"; export default [];';
      const files = {
        'evil.mjs': evil,
        'node_modules/evil/package.json': '{"exports": "./main.mjs"}',
        'node_modules/evil/main.mjs': evil,
        'node_modules/dependency/package.json': '{"exports": "./main.mjs"}',
        'node_modules/dependency/main.mjs': evil,
        'site/nodepool.yaml': '',
        'site/innocent.mjs': innocent,
      };
      for (const [plugin, change, reason] of [
        [
          'evil',
          own,
          /main\.mjs is not loaded: \S+ belongs to user 65534; install it next to nodepool-builder, or/,
        ],
        ['../evil.mjs', own, /evil\.mjs is not loaded: \S+ belongs to user 65534;/],
        ['evil', open, /main\.mjs is not loaded: \S+ is writable for every user;/],
        ['./innocent.mjs', ownDependency, /dependency\/main\.mjs is not loaded: \S+ belongs to user 65534;/],
        [
          `data:text/javascript,${evil.replaceAll(' ', '%20')}`,
          () => {},
          /it is not a package or a path; begin/,
        ],
      ] as const) {
        const directory = dirname(await site(t, files));
        await change(directory);
        const file = join(directory, 'site/nodepool.yaml');
        await writeFile(file, `images-dir: images\nplugins: ['${plugin}']\n`);
        await assert.rejects(loadConfiguration(file), reason);
      }
      assert.equal('ranForeignPlugin' in globalThis, false);
    },
  );

  it('plugins add their keys to the schema for editors', async (t) => {
    const { plugins } = await load(t, ['./plugin.mjs'], {
      'plugin.mjs': `${builder('keyed')}
        const properties = { colour: { type: 'string', description: 'Colour of the image.' } };
        export default { ...module, settings: { type: 'object', properties } };`,
    });
    assert.match(
      JSON.stringify(jsonSchema(plugins.modules)),
      /"colour":\{"type":"string","description":"Colour/,
    );
  });

  it('plugins share this process’s classes, even with a copy of their own', async (t) => {
    const core = 'node_modules/@nodepool-builder/image-builder';
    const { plugins } = await load(t, ['./plugin.mjs'], {
      'plugin.mjs': `${builder('shared')} export default module;`,
      [`${core}/package.json`]: '{"name": "@nodepool-builder/image-builder", "exports": "./copy.mjs"}',
      [`${core}/copy.mjs`]: 'export class BaseImageBuilder {}',
    });
    const made = plugins.modules.createBuilder(
      { name: 'a', formats: [], builder: 'shared', settings: {} },
      NO_SERVICES,
    );
    assert.ok(made instanceof BaseImageBuilder);
  });

  it('plugins that are not installed are rejected with the command that installs them', async (t) => {
    assert.equal(
      await errorOf(t, '@example/missing'),
      './nodepool.yaml:3:6: plugins[0] "@example/missing" is not installed; run "npm install @example/missing" in .',
    );
  });

  it('plugins that do not exist as a file are rejected with the path', async (t) => {
    assert.equal(
      await errorOf(t, './missing.ts'),
      './nodepool.yaml:3:6: plugins[0] "./missing.ts" does not exist; create the file ./missing.ts, or correct the path',
    );
  });

  for (const [what, source, message] of [
    [
      'throw',
      'throw new Error("no licence");',
      /cannot be loaded: Error: no licence \(file:.*plugin\.mjs:1\); correct/,
    ],
    ['are not JavaScript', 'export default {', /cannot be loaded: SyntaxError: Unexpected end of input; /],
    [
      'import a missing package',
      'import "missing";',
      /cannot be loaded: .*Cannot find package 'missing' imported from [^ ]*plugin\.mjs;/,
    ],
    ['export nothing', '', /"\.\/plugin\.mjs": it has no default export; export a module/],
    [
      'have a wrong shape',
      'export default { type: "a" };',
      /: module "a" has no "settings".*; see BuilderModule/,
    ],
    [
      'have the type of another module',
      `${builder('dib')} export default module;`,
      /: module "dib" has the type of another builder; give it a type of its own$/,
    ],
  ] as const) {
    it(`plugins that ${what} are rejected`, async (t) => {
      const error = await errorOf(t, './plugin.mjs', { 'plugin.mjs': source });
      assert.match(error, /^\.\/nodepool\.yaml:3:6: plugins\[0\] "\.\/plugin\.mjs"/);
      assert.match(error, message);
    });
  }

  it('plugins that are not a list of names are rejected', async (t) => {
    const file = await site(t, { 'nodepool.yaml': 'images-dir: i\nplugins: ./a.js\n' });
    await assert.rejects(
      loadConfiguration(file),
      /nodepool\.yaml:2:1: plugins must be a list, but is a string/,
    );
  });

  it('plugins are not loaded again with the configuration, and a change causes a warning', async (t) => {
    const file = await site(t, {
      'nodepool.yaml': configuration(['./one.mjs']),
      'one.mjs': `${builder('one')} export default module;`,
      'two.mjs': 'throw new Error("is not loaded");',
    });
    const { plugins } = await loadConfiguration(file);
    const again = await loadConfiguration(file, { plugins });
    assert.deepEqual(again.warnings, []);
    await writeFile(
      file,
      configuration(['./one.mjs', './two.mjs'], 'diskimages: [{name: a, builder: one}]\n'),
    );
    const changed = await loadConfiguration(file, { plugins });
    assert.deepEqual(
      changed.warnings.map((diagnostic) => formatDiagnostic('nodepool.yaml', diagnostic)),
      [
        'nodepool.yaml:2:1: warning: plugins differs from the plugins that this process has loaded; restart nodepool-builder to load them',
      ],
    );
    assert.deepEqual(changed.plugins.names, ['./one.mjs']);
  });
});
