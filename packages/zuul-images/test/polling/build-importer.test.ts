// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { importedImageId } from '@nodepool-builder/image-builder/internal';
import { randomNumbers } from '../../../../test/fixtures/random-numbers.ts';
import { BuildHistory } from '../../../../test/fixtures/zuul/build-history.ts';
import type { BuildRow } from '../../../../test/fixtures/zuul/build-row.ts';
import { BuildTable, qcowArtifact } from '../../../../test/fixtures/zuul/build-table.ts';
import { directly } from '../api/direct-api.ts';
import {
  DisklessProcessedBuilds,
  FakeBuilders,
  ImporterFixture,
  jobFailed,
  jobLost,
  uuidsOf,
} from './importer-fixture.ts';

function imageIdOf({ uuid, end }: BuildRow): string {
  return importedImageId({ image: 'noble', uuid, endTime: end?.getTime() ?? 0 });
}

/** Number of simulated builds, about half of which build an image. */
const BUILDS = 1200;

describe('an importer', () => {
  test('the importer requests the newest build once, with an image id that names it', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders, logger } = fixture;
    table.add([qcowArtifact('1')]);
    const newest = table.add([qcowArtifact('2')]);
    await fixture.poll();
    const { uuid } = newest;
    assert.deepEqual(builders.asked, [{ name: 'noble', imageId: imageIdOf(newest), key: uuid }]);
    const what = `info build ${uuid} of noble, which ended ${newest.end?.toISOString()}`;
    assert.deepEqual(logger.lines, [
      `${what}: requesting its import as image ${imageIdOf(newest)}`,
      `${what}: imported as image ${imageIdOf(newest)}`,
    ]);
    await fixture.poll();
    fixture.restart();
    await fixture.poll();
    assert.equal(builders.asked.length, 1);
  });

  test('the importer does not request an image that a builder offers, not even after its deletion', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders } = fixture;
    const row = table.add([qcowArtifact('1')]);
    builders.offered.add(imageIdOf(row));
    await fixture.poll();
    builders.offered.clear();
    fixture.restart();
    await fixture.poll();
    assert.deepEqual(builders.asked, []);
  });

  test('the importer imports builds that end during an import', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders } = fixture;
    const rows = [table.add([qcowArtifact('1')])];
    builders.onJob = () => {
      if (rows.length < 3) rows.push(table.add([qcowArtifact(`${rows.length + 1}`)]));
    };
    await fixture.poll();
    assert.deepEqual(builders.askedFor, uuidsOf(...rows));
  });

  test('the importer skips a build with expired artifacts for good, and imports the previous one', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders, expired, logger } = fixture;
    const older = table.add([qcowArtifact('1')]);
    const newer = table.add([qcowArtifact('2')]);
    expired.add(newer.uuid);
    builders.failures.push(jobFailed());
    await fixture.poll();
    assert.deepEqual(builders.askedFor, uuidsOf(newer, older));
    assert.match(
      logger.lines[1] ?? '',
      /^warn build .* skipped for good, because its artifacts have expired$/,
    );
    fixture.restart();
    await fixture.poll();
    assert.equal(builders.asked.length, 2);
  });

  test('the importer retries a failed import at growing intervals unless the artifacts have expired', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders, clock, logger } = fixture;
    const row = table.add([qcowArtifact('1')]);
    builders.failures.push(...Array.from({ length: 6 }, jobFailed));
    const attempts: number[] = [];
    for (let minute = 0; minute <= 50; minute += 1) {
      const before = builders.asked.length;
      await fixture.poll();
      if (builders.asked.length > before) attempts.push(minute);
      clock.pass(60_000);
    }
    assert.deepEqual(attempts, [0, 1, 3, 7, 15, 30, 45]);
    assert.match(
      logger.lines[1] ?? '',
      /^warn build .*: the import failed: the job failed; retrying in 60 s, unless a newer build ends$/,
    );
    assert.deepEqual(new Set(builders.askedFor), new Set(uuidsOf(row)));
  });

  test('the importer retries a failed import if it cannot tell whether the artifacts have expired', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders, clock, logger } = fixture;
    const row = table.add([qcowArtifact('1')]);
    builders.failures.push(jobFailed());
    fixture.unknown = new Error('no certificates');
    await fixture.poll();
    assert.match(
      logger.lines.at(-2) ?? '',
      /^warn build .* cannot check whether its artifacts have expired: no certificates$/,
    );
    clock.pass(60_000);
    await fixture.poll();
    assert.deepEqual(builders.askedFor, uuidsOf(row, row));
  });

  test('the importer retries after the loss of the job server', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders, expired } = fixture;
    const row = table.add([qcowArtifact('1')]);
    expired.add(row.uuid);
    builders.losses.push(jobLost());
    await assert.rejects(fixture.poll(), /^Error: the job was lost$/);
    await fixture.poll();
    assert.deepEqual(builders.askedFor, uuidsOf(row, row));
  });

  test('the importer takes a newer build at once while a failed one waits', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders } = fixture;
    const failed = table.add([qcowArtifact('1')]);
    builders.failures.push(jobFailed());
    await fixture.poll();
    await fixture.poll();
    const newer = table.add([qcowArtifact('2')]);
    await fixture.poll();
    assert.deepEqual(builders.askedFor, uuidsOf(failed, newer));
  });

  test('the importer logs once that it ignores a build that returned an image again', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders, logger } = fixture;
    const first = table.add([qcowArtifact('1')]);
    await fixture.poll();
    logger.lines.length = 0;
    const again = table.add([qcowArtifact('1')]);
    for (let polls = 0; polls < 3; polls += 1) await fixture.poll();
    assert.deepEqual(builders.askedFor, uuidsOf(first));
    assert.deepEqual(logger.lines, [
      `info ignoring build ${again.uuid} of noble: it returned the image of build ${first.uuid} again`,
    ]);
  });

  test('the importer warns once about a build without the image', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { logger } = fixture;
    const { uuid } = table.add([]);
    const line = `warn build ${uuid} of noble is unusable: none of its artifacts is the image`;
    await fixture.poll();
    await fixture.poll();
    assert.deepEqual(logger.lines, [line]);
    table.add([]);
    await fixture.poll();
    assert.equal(logger.lines.length, 2);
  });
});

test('two hosts import each image from weeks of builds once, despite failures and restarts', async (t) => {
  const random = randomNumbers(4);
  const table = new BuildTable();
  const history = new BuildHistory(table, BUILDS, random);
  const builders = new FakeBuilders();
  const hosts = [1, 2].map(
    () => new ImporterFixture(t, directly(table), { builders, processed: new DisklessProcessedBuilds() }),
  );
  for (let known = 0; history.next(); known = history.images.length) {
    // Skips most events without an image.
    if (history.images.length === known && random() < 0.9) continue;
    const [first, second] = random() < 0.5 ? hosts : hosts.toReversed();
    if (random() < 0.1) first?.restart();
    if (random() < 0.1) builders.failures.push(jobFailed());
    await first?.poll().catch(() => undefined);
    builders.failures.length = 0;
    await second?.poll();
  }
  assert.ok(history.images.length > 500, `${history.images.length} images`);
  assert.ok(builders.asked.length > history.images.length, 'no job failed');
  assert.deepEqual(builders.built, history.images.map(imageIdOf));
});
