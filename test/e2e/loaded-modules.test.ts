import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { ROOT } from '../docs/markdown.ts';
import { builderCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import { createManagedSite, endAfter } from '../fixtures/managed-site.ts';

/** Modules that only sites with attestations need. */
const OF_ATTESTATIONS = /loads .*(?:\/@sigstore\/|cyclonedx|packageurl)/;

/** Script that prints the URL of each module that is loaded. */
const REPORT = `
import { registerHooks } from 'node:module';
import { writeSync } from 'node:fs';
registerHooks({
  load(url, context, nextLoad) {
    writeSync(2, 'loads ' + url + '\\n');
    return nextLoad(url, context);
  },
});
`;

/** Modules that only the manager needs. */
const OF_THE_MANAGER = /loads .*(?:\/pg\/|node:sqlite)/;

/** Modules that only Zuul images need. */
const OF_ZUUL = /loads .*(?:\/got\/|\/mqtt\/|zuul-api\.ts)/;

/** Modules that only on-instance builds need. */
const OF_INSTANCES = /loads .*(?:\/ssh2\/|xmldom|build-on-instance\.ts)/;

test('the options --help and --version and usage errors load no other package of this project', async () => {
  for (const args of [['--help'], ['--version'], ['--no-such-option'], ['no-such-command']]) {
    const loaded = loadedBy(args).filter((line) => line.startsWith('loads file:'));
    assert.deepEqual(
      loaded.filter((line) => !/packages\/nodepool-builder\/|node_modules\/commander\//.test(line)),
      [],
    );
    assert.ok(loaded.length < 30, loaded.join('\n'));
  }
});

test('a command that submits a job queries a job server before it loads a module for builders, providers or TLS', async (t) => {
  const site = await createManagedSite(t, { diskimages: [], providers: [] });
  await writeFile(site.config, 'images-dir: /i\ngearman-servers: [{host: 127.0.0.1, port: 1}]\n');
  for (const args of [
    ['image-build', 'docs'],
    ['image-delete', 'docs-1'],
  ]) {
    const loaded = loadedBy([...args, '-c', site.config]);
    assert.ok(loaded.some((line) => line.endsWith('gearman-node/src/admin/admin.ts')));
    assert.deepEqual(
      loaded.filter((line) => /image-builder\/|provider|ajv|client\/|worker\/|node:tls/.test(line)),
      [],
    );
  }
});

/** Returns the modules that a command loads, including Node.js’s own. */
function loadedBy(args: readonly string[]): readonly string[] {
  const program = 'packages/nodepool-builder/src/commands/main.ts';
  const code = `
    import { main } from './${program}';
    process.exitCode = await main(${JSON.stringify(args)});`;
  const report = `--import=data:text/javascript,${encodeURIComponent(REPORT)}`;
  const node = process.execArgv.filter((arg) => !arg.startsWith('--test'));
  const { stderr } = spawnSync(process.execPath, [...node, report, '--input-type=module', '--eval', code], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const loaded = stderr.split('\n').filter((line) => line.startsWith('loads '));
  assert.ok(
    loaded.some((line) => line.endsWith(program)),
    stderr,
  );
  return loaded;
}

for (const [options, isLoaded] of [
  [['--embedded-gearmand'], false],
  [['--all-in-one'], true],
] as const) {
  const verb = isLoaded ? 'loads' : 'does not load';
  test(`the daemon with ${options.join(' ')} ${verb} what only the manager needs`, async (t) => {
    const site = await createManagedSite(t, { diskimages: [], providers: [] });
    const [file, args] = builderCommand('-d', '-c', site.config, ...options);
    const report = `--import=data:text/javascript,${encodeURIComponent(REPORT)}`;
    const builder = endAfter(t, spawnDaemon([file, [report, ...args]]));
    await builder.logged(/nodepool\.builder: serving /);
    assert.ok(builder.log.some((line) => line.startsWith('loads file:')));
    assert.equal(
      builder.log.some((line) => OF_THE_MANAGER.test(line)),
      isLoaded,
    );
    assert.deepEqual(
      builder.log.filter((line) =>
        [OF_ZUUL, OF_INSTANCES, OF_ATTESTATIONS].some((pattern) => pattern.test(line)),
      ),
      [],
    );
  });
}
