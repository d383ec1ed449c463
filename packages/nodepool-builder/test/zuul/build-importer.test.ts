import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { zuulImageId } from '@nodepool-builder/image-builder';
import type { BuildRow } from '../../../../test/fixtures/zuul/build-row.ts';
import { qcowArtifact } from '../../../../test/fixtures/zuul/build-table.ts';
import { ImporterFixture, jobFailed, jobLost, uuidsOf } from './importer-fixture.ts';

function imageIdOf({ uuid, end }: BuildRow): string {
  return zuulImageId({ image: 'noble', uuid, endTime: end?.getTime() ?? 0 });
}

describe('importing new builds', () => {
  test('has an image made of the newest, under an id that names the build, once', async (t) => {
    const fixture = await ImporterFixture.create(t);
    const { zuul, builders, logger } = fixture;
    zuul.table().add([qcowArtifact('1')]);
    const newest = zuul.table().add([qcowArtifact('2')]);
    await fixture.look();
    const { uuid } = newest;
    assert.deepEqual(builders.asked, [{ name: 'noble', imageId: imageIdOf(newest), uuid }]);
    const what = `info build ${uuid} of noble, which ended ${newest.end?.toISOString()}`;
    assert.deepEqual(logger.lines, [
      `${what}: having image ${imageIdOf(newest)} made of it`,
      `${what}: taken, as image ${imageIdOf(newest)}`,
    ]);
    await fixture.look();
    fixture.restart();
    await fixture.look();
    assert.equal(builders.asked.length, 1);
  });

  test('takes for done what a builder offers, and leaves it so when it is deleted', async (t) => {
    const fixture = await ImporterFixture.create(t);
    const { zuul, builders } = fixture;
    const row = zuul.table().add([qcowArtifact('1')]);
    builders.offered.add(imageIdOf(row));
    await fixture.look();
    builders.offered.clear();
    fixture.restart();
    await fixture.look();
    assert.deepEqual(builders.asked, []);
  });

  test('takes what ends while another is imported', async (t) => {
    const fixture = await ImporterFixture.create(t);
    const { zuul, builders } = fixture;
    const rows = [zuul.table().add([qcowArtifact('1')])];
    builders.onJob = () => {
      if (rows.length < 3) rows.push(zuul.table().add([qcowArtifact(`${rows.length + 1}`)]));
    };
    await fixture.look();
    assert.deepEqual(builders.built, uuidsOf(...rows));
  });

  test('gives up a build whose artifacts are gone, for good, and takes the one before', async (t) => {
    const fixture = await ImporterFixture.create(t);
    const { zuul, builders, gone, logger } = fixture;
    const older = zuul.table().add([qcowArtifact('1')]);
    const newer = zuul.table().add([qcowArtifact('2')]);
    gone.add(newer.uuid);
    builders.failures.push(jobFailed());
    await fixture.look();
    assert.deepEqual(builders.built, uuidsOf(newer, older));
    assert.match(logger.lines[1] ?? '', /^warn build .* given up: its artifacts are gone$/);
    fixture.restart();
    await fixture.look();
    assert.equal(builders.asked.length, 2);
  });

  test('tries again later what failed while the artifacts are there', async (t) => {
    const fixture = await ImporterFixture.create(t);
    const { zuul, builders } = fixture;
    const row = zuul.table().add([qcowArtifact('1')]);
    builders.failures.push(jobFailed());
    await assert.rejects(fixture.look(), { code: 'job-failed' });
    await fixture.look();
    assert.deepEqual(builders.built, uuidsOf(row, row));
  });

  test('gives nothing up for a job server that was lost', async (t) => {
    const fixture = await ImporterFixture.create(t);
    const { zuul, builders, gone } = fixture;
    const row = zuul.table().add([qcowArtifact('1')]);
    gone.add(row.uuid);
    builders.failures.push(jobLost());
    await assert.rejects(fixture.look(), { code: 'job-lost' });
    await fixture.look();
    assert.deepEqual(builders.built, uuidsOf(row, row));
  });

  test('prefers a newer build to one that failed', async (t) => {
    const fixture = await ImporterFixture.create(t);
    const { zuul, builders } = fixture;
    const failed = zuul.table().add([qcowArtifact('1')]);
    builders.failures.push(jobFailed());
    await assert.rejects(fixture.look());
    const newer = zuul.table().add([qcowArtifact('2')]);
    await fixture.look();
    assert.deepEqual(builders.built, uuidsOf(failed, newer));
  });

  test('says once of a build that it does not return the image', async (t) => {
    const fixture = await ImporterFixture.create(t);
    const { zuul, logger } = fixture;
    const { uuid } = zuul.table().add([]);
    const line = `warn build ${uuid} of noble is of no use: none of its artifacts is the image`;
    await fixture.look();
    await fixture.look();
    assert.deepEqual(logger.lines, [line]);
    zuul.table().add([]);
    await fixture.look();
    assert.equal(logger.lines.length, 2);
  });
});
