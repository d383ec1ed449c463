import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { randomNumbers } from '../../../../test/fixtures/random-numbers.ts';
import { BuildHistory } from '../../../../test/fixtures/zuul/build-history.ts';
import type { BuildRow } from '../../../../test/fixtures/zuul/build-row.ts';
import { BuildTable } from '../../../../test/fixtures/zuul/build-table.ts';
import { temporaryDirectory } from '../../../image-builder/test/temporary-directory.ts';
import { type BuildSource, findBuild } from '../../src/builds/find-build.ts';
import { ProcessedBuilds } from '../../src/builds/processed-builds.ts';
import {
  EMPTY_HISTORY,
  type ProcessedHistory,
  withGivenUp,
  withTaken,
} from '../../src/builds/processed-history.ts';
import { ApiFixture, ON, QUERY, startZuul } from '../api/api-fixture.ts';
import { directly } from '../api/direct-api.ts';

const BUILDS = 1200;

const SOURCE: BuildSource = {
  query: { ...QUERY, pipelines: ['periodic', 'post', 'promote'] },
  rules: { imageName: 'ubuntu-noble', artifacts: [{ format: 'qcow2', type: 'image-qcow' }] },
};

/** What is right, told from what really happened: the image that is newest of those newer than the last one taken. */
class Expectation {
  readonly taken: BuildRow[] = [];
  readonly lost = new Set<BuildRow>();
  readonly #history: BuildHistory;

  constructor(history: BuildHistory) {
    this.#history = history;
  }

  get next(): BuildRow | undefined {
    const last = this.taken.at(-1);
    return this.#history.images
      .filter((row) => !this.lost.has(row) && (last === undefined || isNewer(row, last)))
      .reduce<BuildRow | undefined>(
        (newest, row) => (newest === undefined || isNewer(row, newest) ? row : newest),
        undefined,
      );
  }
}

/** In seconds, as Zuul tells it. */
function endOf({ end }: BuildRow): number {
  return Math.floor((end?.getTime() ?? 0) / 1000);
}

function isNewer(a: BuildRow, b: BuildRow): boolean {
  return endOf(a) > endOf(b) || (endOf(a) === endOf(b) && a.id > b.id);
}

describe('of weeks of builds', () => {
  test('each image is taken once, none is missed, if one looks after each event', async () => {
    const random = randomNumbers(0);
    const table = new BuildTable();
    const history = new BuildHistory(table, BUILDS, random);
    const api = directly(table);
    const taken: string[] = [];
    let memory: ProcessedHistory = EMPTY_HISTORY;
    for (let known = 0; history.next(); known = history.images.length) {
      const { chosen } = await findBuild(api, SOURCE, memory, ON);
      if (history.images.length === known) assert.equal(chosen, undefined);
      if (chosen === undefined) continue;
      taken.push(chosen.build.uuid);
      memory = withTaken(memory, chosen);
    }
    assert.ok(history.images.length > 500, `${history.images.length} images`);
    assert.ok(history.overtaken > 100, `${history.overtaken} overtaken`);
    assert.deepEqual(
      taken,
      history.images.map(({ uuid }) => uuid),
    );
  });

  for (const seed of [1, 2]) {
    test(`the newest is taken once, if one looks now and then and not all can be had (seed ${seed})`, async () => {
      const random = randomNumbers(seed);
      const table = new BuildTable();
      const history = new BuildHistory(table, BUILDS, random);
      const expectation = new Expectation(history);
      const api = directly(table);
      let memory: ProcessedHistory = EMPTY_HISTORY;
      while (history.next()) {
        if (random() < 0.8) continue;
        const { chosen } = await findBuild(api, SOURCE, memory, ON);
        const { next } = expectation;
        assert.equal(chosen?.build.uuid, next?.uuid);
        // a passing failure is not remembered
        if (chosen === undefined || next === undefined || random() < 0.1) continue;
        if (random() < 0.1) {
          expectation.lost.add(next);
          memory = withGivenUp(memory, chosen);
        } else {
          expectation.taken.push(next);
          memory = withTaken(memory, chosen);
        }
      }
      assert.ok(expectation.taken.length > 100, `${expectation.taken.length} taken`);
      assert.ok(expectation.lost.size > 10, `${expectation.lost.size} lost`);
    });
  }

  test('the same goes for a real server, and one that looks and is restarted all the time', async (t) => {
    const zuul = await startZuul(t);
    const random = randomNumbers(3);
    const history = new BuildHistory(zuul.table(), BUILDS, random);
    const expectation = new Expectation(history);
    const path = join(await temporaryDirectory(t), 'noble.json');
    const { api } = new ApiFixture(zuul);
    for (let events = 1; history.next(); events += 1) {
      if (events % 25 !== 0) continue;
      const seen = await ProcessedBuilds.open(path);
      const { chosen } = await findBuild(api, SOURCE, seen.history, ON);
      const { next } = expectation;
      assert.equal(chosen?.build.uuid, next?.uuid);
      if (chosen === undefined || next === undefined) continue;
      expectation.taken.push(next);
      await seen.taken(chosen);
    }
    assert.ok(expectation.taken.length > 50, `${expectation.taken.length} taken`);
  });
});
