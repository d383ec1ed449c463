import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { randomNumbers } from '../../../../test/fixtures/random-numbers.ts';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { BuildHistory } from '../../../../test/fixtures/zuul/build-history.ts';
import type { BuildRow } from '../../../../test/fixtures/zuul/build-row.ts';
import { BuildTable } from '../../../../test/fixtures/zuul/build-table.ts';
import { QUERY, startZuul } from '../../../../test/fixtures/zuul/start-zuul.ts';
import { findBuild, type ImageSource } from '../../src/builds/find-build.ts';
import {
  EMPTY_HISTORY,
  ProcessedBuilds,
  type ProcessedHistory,
  withImported,
  withSkipped,
} from '../../src/builds/processed-builds.ts';
import { ApiFixture, ON } from '../api/api-fixture.ts';
import { directly } from '../api/direct-api.ts';

const BUILDS = 1200;

const SOURCE: ImageSource = {
  ...QUERY,
  pipelines: ['periodic', 'post', 'promote'],
  name: 'ubuntu-noble',
  artifacts: [{ format: 'qcow2', type: 'image-qcow' }],
  'require-sha256': false,
};

/** Expected choice: the newest image, if it is newer than the last imported one. */
class Expectation {
  readonly imported: BuildRow[] = [];
  readonly lost = new Set<BuildRow>();
  readonly #history: BuildHistory;

  constructor(history: BuildHistory) {
    this.#history = history;
  }

  get next(): BuildRow | undefined {
    const last = this.imported.at(-1);
    return this.#history.images
      .filter((row) => !this.lost.has(row) && (last === undefined || isNewer(row, last)))
      .reduce<BuildRow | undefined>(
        (newest, row) => (newest === undefined || isNewer(row, newest) ? row : newest),
        undefined,
      );
  }
}

/** Converts a time to seconds, the resolution of Zuul. */
function endOf({ end }: BuildRow): number {
  return Math.floor((end?.getTime() ?? 0) / 1000);
}

function isNewer(a: BuildRow, b: BuildRow): boolean {
  return endOf(a) > endOf(b) || (endOf(a) === endOf(b) && a.id > b.id);
}

describe('weeks of builds', () => {
  test('each image from weeks of builds is imported once by a poll after each event', async () => {
    const random = randomNumbers(0);
    const table = new BuildTable();
    const history = new BuildHistory(table, BUILDS, random);
    const api = directly(table);
    const imported: string[] = [];
    let processedHistory: ProcessedHistory = EMPTY_HISTORY;
    for (let known = 0; history.next(); known = history.images.length) {
      const { chosen } = await findBuild(api, SOURCE, processedHistory, ON);
      if (history.images.length === known) assert.equal(chosen, undefined);
      if (chosen === undefined) continue;
      imported.push(chosen.build.uuid);
      processedHistory = withImported(processedHistory, chosen);
    }
    assert.ok(history.images.length > 500, `${history.images.length} images`);
    assert.ok(history.overtaken > 100, `${history.overtaken} overtaken`);
    assert.deepEqual(
      imported,
      history.images.map(({ uuid }) => uuid),
    );
  });

  for (const seed of [1, 2]) {
    test(`the newest image is imported once by occasional polls if some images expire (seed ${seed})`, async () => {
      const random = randomNumbers(seed);
      const table = new BuildTable();
      const history = new BuildHistory(table, BUILDS, random);
      const expectation = new Expectation(history);
      const api = directly(table);
      let processedHistory: ProcessedHistory = EMPTY_HISTORY;
      while (history.next()) {
        if (random() < 0.8) continue;
        const { chosen } = await findBuild(api, SOURCE, processedHistory, ON);
        const { next } = expectation;
        assert.equal(chosen?.build.uuid, next?.uuid);
        // A transient failure is not recorded.
        if (chosen === undefined || next === undefined || random() < 0.1) continue;
        if (random() < 0.1) {
          expectation.lost.add(next);
          processedHistory = withSkipped(processedHistory, chosen);
        } else {
          expectation.imported.push(next);
          processedHistory = withImported(processedHistory, chosen);
        }
      }
      assert.ok(expectation.imported.length > 100, `${expectation.imported.length} imported`);
      assert.ok(expectation.lost.size > 10, `${expectation.lost.size} lost`);
    });
  }

  test('the newest image on a real server is imported once by a poller that restarts each time', async (t) => {
    const zuul = await startZuul(t);
    const random = randomNumbers(3);
    const history = new BuildHistory(zuul.table(), BUILDS, random);
    const expectation = new Expectation(history);
    const directory = await temporaryDirectory(t);
    const { api } = new ApiFixture(zuul);
    for (let events = 1; history.next(); events += 1) {
      if (events % 25 !== 0) continue;
      const processed = await ProcessedBuilds.open(directory, 'noble');
      const { chosen } = await findBuild(api, SOURCE, processed.history, ON);
      const { next } = expectation;
      assert.equal(chosen?.build.uuid, next?.uuid);
      if (chosen === undefined || next === undefined) continue;
      expectation.imported.push(next);
      await processed.write(withImported(processed.history, chosen));
    }
    assert.ok(expectation.imported.length > 50, `${expectation.imported.length} imported`);
  });
});
