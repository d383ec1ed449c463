import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '../../../image-builder/test/temporary-directory.ts';
import { withCode } from '../../../image-builder/test/with-code.ts';
import { ProcessedBuilds } from '../../src/builds/processed-builds.ts';
import type { BuildRecord, HistoryUpdate } from '../../src/builds/processed-history.ts';
import { zuulFailure } from '../api/zuul-failure.ts';

function entry(id: number, more: Partial<BuildRecord> = {}): BuildRecord {
  const content = [{ format: 'qcow2', url: `https://images/${id}`, sha256: 'a'.repeat(64) } as const];
  return { uuid: `build-${id}`, id, endTime: id * 1000, pipeline: 'periodic', content, ...more };
}

function chosen(id: number): HistoryUpdate {
  return { same: [entry(id)], passedOver: [] };
}

describe('what is remembered of builds', () => {
  test('is nothing at first, and the same after a restart', async (t) => {
    const path = join(await temporaryDirectory(t), 'noble.json');
    const seen = await ProcessedBuilds.open(path);
    assert.deepEqual(seen.history, { newest: undefined, builds: new Map() });
    const noHash = entry(2, { content: [{ format: 'raw', url: 's3://b/k' }] });
    await seen.taken({ same: [entry(1)], passedOver: [noHash] });
    const again = await ProcessedBuilds.open(path);
    assert.deepEqual(again.history, seen.history);
    assert.deepEqual(again.history.newest, { endTime: 1000, id: 1 });
    assert.deepEqual([...again.history.builds.values()], [entry(1), noHash]);
  });

  test('never goes backwards', async (t) => {
    const seen = await ProcessedBuilds.open(join(await temporaryDirectory(t), 'noble.json'));
    await seen.taken(chosen(5));
    await seen.taken(chosen(3));
    assert.deepEqual(seen.history.newest, { endTime: 5000, id: 5 });
  });

  test('of one that was given up does not stand in the way of an older one', async (t) => {
    const seen = await ProcessedBuilds.open(join(await temporaryDirectory(t), 'noble.json'));
    await seen.givenUp(chosen(9));
    assert.equal(seen.history.newest, undefined);
    assert.ok(seen.history.builds.has('build-9'));
  });

  test('is bounded: the oldest are forgotten', async (t) => {
    const path = join(await temporaryDirectory(t), 'noble.json');
    const seen = await ProcessedBuilds.open(path);
    const many = Array.from({ length: 599 }, (_, index) => entry(index + 1));
    await seen.taken({ same: [entry(600)], passedOver: many.toReversed() });
    const { builds } = (await ProcessedBuilds.open(path)).history;
    assert.equal(builds.size, 500);
    assert.ok(builds.has('build-600') && builds.has('build-101') && !builds.has('build-100'));
  });

  test('at the same time is remembered whole', async (t) => {
    const path = join(await temporaryDirectory(t), 'noble.json');
    const seen = await ProcessedBuilds.open(path);
    await Promise.all([1, 2, 3, 4].map((id) => seen.taken(chosen(id))));
    assert.equal((await ProcessedBuilds.open(path)).history.builds.size, 4);
    assert.deepEqual(await readdir(join(path, '..')), ['noble.json']);
  });

  test('that was is not changed by what comes', async (t) => {
    const seen = await ProcessedBuilds.open(join(await temporaryDirectory(t), 'noble.json'));
    const before = seen.history;
    await seen.taken(chosen(1));
    assert.equal(before.builds.size, 0);
  });

  const damages: Readonly<Record<string, string>> = {
    'half a file': '{"version":1,"builds":[',
    'another version': '{"version":2,"builds":[]}',
    'no list': '{"version":1}',
    'no uuid': '{"version":1,"builds":[{"id":1,"endTime":1,"pipeline":"p","content":[]}]}',
    'no time': '{"version":1,"newest":{"id":1},"builds":[]}',
    'no format':
      '{"version":1,"builds":[{"uuid":"u","id":1,"endTime":1,"pipeline":"p","content":[{"url":"x"}]}]}',
  };
  for (const [what, content] of Object.entries(damages)) {
    test(`is told from ${what}`, async (t) => {
      const path = join(await temporaryDirectory(t), 'noble.json');
      await writeFile(path, content);
      await assert.rejects(ProcessedBuilds.open(path), zuulFailure('memory-damaged', path, 'remove it'));
      assert.equal(await readFile(path, 'utf8'), content);
    });
  }

  test('is nothing more where it cannot be written', async (t) => {
    const path = join(await temporaryDirectory(t), 'no-such-directory', 'noble.json');
    const seen = await ProcessedBuilds.open(path);
    await assert.rejects(seen.taken(chosen(1)), withCode('directory-not-usable', /noble\.json/));
    assert.equal(seen.history.builds.size, 0);
  });
});

test('SIGKILL at any moment loses nothing that was remembered', async (t) => {
  const path = join(await temporaryDirectory(t), 'noble.json');
  for (let round = 0; round < 5; round += 1) {
    const child = spawn(
      process.execPath,
      [...process.execArgv, join(import.meta.dirname, 'history-victim.ts'), path],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let last = 0;
    for await (const line of createInterface(child.stdout)) {
      last = Number(line);
      // the next one is being written
      if (last % 7 === round % 7) break;
    }
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { newest, builds } = (await ProcessedBuilds.open(path)).history;
    assert.ok(newest !== undefined && newest.id >= last, `${newest?.id} of ${last}`);
    for (let id = 1; id <= last; id += 1) assert.ok(builds.has(`build-${id}`), `build ${id}`);
  }
});
