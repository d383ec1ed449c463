import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { formatDiagnostic } from '../../src/yaml/diagnostic.ts';

let directory: string;
let file: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cron-diagnostics-'));
  file = join(directory, 'nodepool.yaml');
});
after(() => rm(directory, { recursive: true }));

test('an invalid rebuild-cron causes an error with line and remedy', async () => {
  await writeFile(file, 'images-dir: i\ndiskimages:\n  - name: a\n    rebuild-cron: nonsense\n');
  await assert.rejects(loadConfiguration(file), {
    name: 'ConfigurationError',
    message:
      /^.*nodepool\.yaml:4:5: diskimages\[0\]\.rebuild-cron is not a cron expression: .*'nonsense'.*; write minute, hour, day, month and weekday, as '14 2 \* \* \*', or use rebuild-age$/,
  });
});

test('an invalid image-update of nodepool causes a warning, and images are rebuilt by age', async () => {
  await writeFile(file, 'images-dir: i\ncron: {image-update: sometimes}\ndiskimages: [{name: a}]\n');
  const { configuration, warnings } = await loadConfiguration(file);
  assert.equal(warnings.length, 1);
  assert.match(
    warnings.map((warning) => formatDiagnostic('nodepool.yaml', warning)).join(),
    /^nodepool\.yaml:2:\d+: warning: cron\.image-update is not a cron expression: .*; correct it; until then .* once a day$/,
  );
  assert.deepEqual(
    configuration.diskimages.map(({ rebuildAge, rebuildCron }) => [rebuildAge, rebuildCron]),
    [[86_400, undefined]],
  );
});

test('valid cron expressions are read unchanged', async () => {
  await writeFile(
    file,
    `images-dir: i
cron: {image-update: '14 2 * * *', cleanup: whenever}
diskimages: [{name: a}, {name: b, rebuild-cron: '@weekly'}, {name: c, rebuild-age: 60}]
`,
  );
  const { configuration, warnings } = await loadConfiguration(file);
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    configuration.diskimages.map(({ rebuildAge, rebuildCron }) => rebuildCron ?? rebuildAge),
    ['14 2 * * *', '@weekly', 60],
  );
});
