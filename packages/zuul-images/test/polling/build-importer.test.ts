// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { importedImageId } from '@nodepool-builder/image-builder/module-kit';
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

/** Simulated builds, of which about half make an image. */
const BUILDS = 1200;

describe('importing new builds', () => {
  test('has an image made of the newest, under an id that names the build, once', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders, logger } = fixture;
    table.add([qcowArtifact('1')]);
    const newest = table.add([qcowArtifact('2')]);
    await fixture.look();
    const { uuid } = newest;
    assert.deepEqual(builders.asked, [{ name: 'noble', imageId: imageIdOf(newest), key: uuid }]);
    const what = `info build ${uuid} of noble, which ended ${newest.end?.toISOString()}`;
    assert.deepEqual(logger.lines, [
      `${what}: requesting its import as image ${imageIdOf(newest)}`,
      `${what}: imported as image ${imageIdOf(newest)}`,
    ]);
    await fixture.look();
    fixture.restart();
    await fixture.look();
    assert.equal(builders.asked.length, 1);
  });

  test('takes for done what a builder offers, and leaves it so when it is deleted', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders } = fixture;
    const row = table.add([qcowArtifact('1')]);
    builders.offered.add(imageIdOf(row));
    await fixture.look();
    builders.offered.clear();
    fixture.restart();
    await fixture.look();
    assert.deepEqual(builders.asked, []);
  });

  test('takes what ends while another is imported', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders } = fixture;
    const rows = [table.add([qcowArtifact('1')])];
    builders.onJob = () => {
      if (rows.length < 3) rows.push(table.add([qcowArtifact(`${rows.length + 1}`)]));
    };
    await fixture.look();
    assert.deepEqual(builders.askedFor, uuidsOf(...rows));
  });

  test('gives up a build whose artifacts are gone, for good, and takes the one before', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders, gone, logger } = fixture;
    const older = table.add([qcowArtifact('1')]);
    const newer = table.add([qcowArtifact('2')]);
    gone.add(newer.uuid);
    builders.failures.push(jobFailed());
    await fixture.look();
    assert.deepEqual(builders.askedFor, uuidsOf(newer, older));
    assert.match(
      logger.lines[1] ?? '',
      /^warn build .* skipped for good, because its artifacts have expired$/,
    );
    fixture.restart();
    await fixture.look();
    assert.equal(builders.asked.length, 2);
  });

  test('tries again later what failed while the artifacts are there, or may be', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders, logger } = fixture;
    const row = table.add([qcowArtifact('1')]);
    builders.failures.push(jobFailed(), jobFailed());
    await assert.rejects(fixture.look(), /^Error: the job failed$/);
    fixture.unknown = new Error('no certificates');
    await assert.rejects(fixture.look(), /^Error: the job failed$/);
    assert.match(
      logger.lines.at(-1) ?? '',
      /^warn build .* cannot tell whether its artifacts have expired: no certificates$/,
    );
    await fixture.look();
    assert.deepEqual(builders.askedFor, uuidsOf(row, row, row));
  });

  test('gives nothing up for a job server that was lost', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders, gone } = fixture;
    const row = table.add([qcowArtifact('1')]);
    gone.add(row.uuid);
    builders.losses.push(jobLost());
    await assert.rejects(fixture.look(), /^Error: the job was lost$/);
    await fixture.look();
    assert.deepEqual(builders.askedFor, uuidsOf(row, row));
  });

  test('prefers a newer build to one that failed', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { builders } = fixture;
    const failed = table.add([qcowArtifact('1')]);
    builders.failures.push(jobFailed());
    await assert.rejects(fixture.look());
    const newer = table.add([qcowArtifact('2')]);
    await fixture.look();
    assert.deepEqual(builders.askedFor, uuidsOf(failed, newer));
  });

  test('says once of a build that it does not return the image', async (t) => {
    const table = new BuildTable();
    const fixture = new ImporterFixture(t, directly(table));
    const { logger } = fixture;
    const { uuid } = table.add([]);
    const line = `warn build ${uuid} of noble is unusable: none of its artifacts is the image`;
    await fixture.look();
    await fixture.look();
    assert.deepEqual(logger.lines, [line]);
    table.add([]);
    await fixture.look();
    assert.equal(logger.lines.length, 2);
  });
});

test('of weeks of builds each image is imported once, whichever of two hosts looks first, fails or is restarted', async (t) => {
  const random = randomNumbers(4);
  const table = new BuildTable();
  const history = new BuildHistory(table, BUILDS, random);
  const builders = new FakeBuilders();
  const hosts = [1, 2].map(
    () => new ImporterFixture(t, directly(table), { builders, seen: new DisklessProcessedBuilds() }),
  );
  for (let known = 0; history.next(); known = history.images.length) {
    // most of the rest is of no concern
    if (history.images.length === known && random() < 0.9) continue;
    const [first, second] = random() < 0.5 ? hosts : hosts.toReversed();
    if (random() < 0.1) first?.restart();
    if (random() < 0.1) builders.failures.push(jobFailed());
    await first?.look().catch(() => undefined);
    builders.failures.length = 0;
    await second?.look();
  }
  assert.ok(history.images.length > 500, `${history.images.length} images`);
  assert.ok(builders.asked.length > history.images.length, 'no job failed');
  assert.deepEqual(builders.built, history.images.map(imageIdOf));
});
