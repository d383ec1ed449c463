import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builderCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import { createManagedSite, endAfter } from '../fixtures/managed-site.ts';

/** Prints the address of each module that is loaded. */
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
const OF_THE_MANAGER = /loads .*(?:image-manager|\/croner\/|\/pg\/|node:sqlite)/;

/** Modules that only images of Zuul need. */
const OF_ZUUL = /loads .*(?:\/got\/|\/mqtt\/|zuul-api\.ts)/;

/** Modules that only on-instance builds need. */
const OF_INSTANCES = /loads .*(?:\/ssh2\/|xmldom|build-on-instance\.ts)/;

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
      builder.log.filter((line) => OF_ZUUL.test(line) || OF_INSTANCES.test(line)),
      [],
    );
  });
}
